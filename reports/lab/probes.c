// SPDX-License-Identifier: Apache-2.0
/* A table of answers for each kernel, the line that sums them up behind it; or all of it as JSON. */
#include "reports/lab/lab.h"

#include <string.h>

#include "reports/text/grid.h"
#include "reports/text/output.h"
#include "src/core/case_key.h"
#include "src/core/json.h"
#include "src/core/names.h"
#include "src/lab/probe/probe.h"

static const char *meaning_of(const char *question) {
    for (size_t i = 0; i < nb_n_probe_questions; i++)
        if (strcmp(nb_probe_questions[i].name, question) == 0) return nb_probe_questions[i].help;
    return NULL;
}

static void print_answers(const cJSON *answers, FILE *out) {
    static const char *const titles[] = {"question", "value", "confidence", "evidence"};
    const cJSON *answer;
    struct nb_grid grid;
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    cJSON_ArrayForEach(answer, answers) {
        const char *value = nb_json_get_text(answer, "value"), *confidence = nb_json_get_text(answer, "confidence");
        nb_grid_row(&grid, nb_json_get_text(answer, "question"), value ? value : "undetermined",
                    confidence ? confidence : "", nb_json_get_text(answer, "evidence"));
    }
    if (grid.n_cells) nb_grid_print(&grid, "table", out);
    nb_grid_release(&grid);
}

static void print_table(const struct nb_case *cases, cJSON *const *answers, int n, FILE *out) {
    for (int i = 0; i < n; i++) {
        if (!answers[i]) continue;
        const char *summary = nb_json_get_text(answers[i], "summary"), *reason = nb_json_get_text(answers[i], "reason");
        if (i) nb_print_line(out, "%s", "");
        nb_print_line(out, "%s, called with affine %s", cases[i].variant, nb_affine_names[cases[i].formula.affine]);
        if (reason) nb_print_line(out, "%s: %s", nb_json_get_text(answers[i], "status"), reason);
        print_answers(nb_json_get(answers[i], "answers"), out);
        if (summary) nb_print_line(out, "%s: %s", cases[i].variant, summary);
    }
}

static void add_meanings(cJSON *answers) {
    cJSON *answer;
    cJSON_ArrayForEach(answer, answers) {
        const char *question = nb_json_get_text(answer, "question");
        nb_json_text(answer, "meaning", question ? meaning_of(question) : NULL);
    }
}

static void print_json(const struct nb_case *cases, cJSON *const *answers, int n, FILE *out) {
    struct nb_strbuf key = {0};
    cJSON *all = cJSON_CreateObject(), *probes = cJSON_AddArrayToObject(all, "probes");
    for (int i = 0; i < n; i++) {
        if (!answers[i]) continue;
        cJSON *one = cJSON_Duplicate(answers[i], true);
        nb_strbuf_clear(&key);
        nb_case_key(&cases[i], &key);
        nb_json_text(one, "variant", cases[i].variant);
        nb_json_text(one, "called_as", key.text);
        add_meanings(nb_json_get(one, "answers"));
        cJSON_AddItemToArray(probes, one);
    }
    nb_json_put(all, out);
    nb_strbuf_release(&key);
    cJSON_Delete(all);
}

void nb_probes_print(const struct nb_case *cases, cJSON *const *answers, int n, const char *format, FILE *out) {
    if (strcmp(format, "json") == 0)
        print_json(cases, answers, n, out);
    else
        print_table(cases, answers, n, out);
}
