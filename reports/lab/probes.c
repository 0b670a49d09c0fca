// SPDX-License-Identifier: Apache-2.0
/* For each kernel the line that sums it up, then its answers; or all of it as JSON. */
#include "reports/lab/lab.h"

#include <stdlib.h>
#include <string.h>

#include "reports/text/grid.h"
#include "reports/text/output.h"
#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/names.h"
#include "src/core/text.h"
#include "src/lab/probe/probe.h"

static const char *meaning_of(const char *question) {
    for (size_t i = 0; i < nb_n_probe_questions; i++)
        if (strcmp(nb_probe_questions[i].name, question) == 0) return nb_probe_questions[i].help;
    return NULL;
}

static void print_answers(const struct nb_page *page, const cJSON *answers) {
    const cJSON *answer;
    struct nb_grid grid released_by(nb_grid_release) = nb_grid_of("question", "answer, how sure, and what was seen");
    cJSON_ArrayForEach(answer, answers) {
        const char *value = nb_json_get_text(answer, "value"), *confidence = nb_json_get_text(answer, "confidence");
        nb_grid_add(&grid, nb_json_get_text(answer, "question"));
        nb_grid_addf(&grid, "%s%s%s: %s", value ? value : "undetermined", confidence ? ", " : "",
                     confidence ? confidence : "", nb_json_get_string(answer, "evidence"));
    }
    if (grid.n_cells) nb_page_grid(page, &grid);
}

static void print_table(const struct nb_case *cases, cJSON *const *answers, int n, FILE *out) {
    struct nb_strbuf text = {0};
    const struct nb_page page = nb_page_for(out, false, &text);
    for (int i = 0; i < n; i++) {
        if (!answers[i]) continue;
        const char *summary = nb_json_get_text(answers[i], "summary"), *reason = nb_json_get_text(answers[i], "reason");
        char *heads[] = {
            nb_textf("%s%s%s", cases[i].variant, summary ? ": " : "", summary ? summary : ""),
            nb_textf("Called with affine %s.", nb_affine_names[cases[i].formula.affine]),
            reason ? nb_textf("%s: %s", nb_json_get_text(answers[i], "status"), reason) : NULL,
        };
        nb_strbuf_add(&text, text.len ? "\n" : "");
        for (size_t k = 0; k < sizeof heads / sizeof heads[0]; k++) {
            nb_page_say(&page, heads[k]);
            free(heads[k]);
        }
        print_answers(&page, nb_json_get(answers[i], "answers"));
    }
    nb_output(&text, out);
}

static void add_meanings(cJSON *answers) {
    cJSON *answer;
    cJSON_ArrayForEach(answer, answers) {
        const char *question = nb_json_get_text(answer, "question");
        nb_json_text(answer, "meaning", question ? meaning_of(question) : NULL);
    }
}

static void print_json(const struct nb_case *cases, cJSON *const *answers, int n, FILE *out) {
    cJSON *all = cJSON_CreateObject(), *probes = cJSON_AddArrayToObject(all, "probes");
    for (int i = 0; i < n; i++) {
        if (!answers[i]) continue;
        cJSON *one = cJSON_Duplicate(answers[i], true);
        char *key freed = nb_case_key(&cases[i]);
        nb_json_text(one, "variant", cases[i].variant);
        nb_json_text(one, "called_as", key);
        add_meanings(nb_json_get(one, "answers"));
        cJSON_AddItemToArray(probes, one);
    }
    nb_output_json(all, out);
}

void nb_probes_print(const struct nb_case *cases, cJSON *const *answers, int n, const char *format, FILE *out) {
    if (strcmp(format, "json") == 0)
        print_json(cases, answers, n, out);
    else
        print_table(cases, answers, n, out);
}
