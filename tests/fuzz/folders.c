// SPDX-License-Identifier: Apache-2.0
/* Targets that read a folder of a run, or several, and show what is there in every way. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reports/claims/claims_report.h"
#include "reports/figures/figure.h"
#include "reports/lab/stress_report.h"
#include "reports/run/report.h"
#include "src/claims/claims_document.h"
#include "src/claims/training.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/lab/stress/stress.h"
#include "src/measure/journal.h"
#include "src/models/study.c"
#include "src/record/record.h"
#include "tests/fuzz/fuzz.h"

/* A document whose sum does not fit is not looked at, so the sums of what is JSON are put right; not where it begins with '!', which is
 * taken away. */
static char *write_document(const char *folder, const char *name, const uint8_t *bytes, size_t n) {
    const bool as_it_is = n > 0 && *bytes == '!';
    struct nb_strbuf summed released_by(nb_strbuf_release) = {0};
    char *text freed = fuzz_text(bytes, n, NULL);
    cJSON *json released_by(nb_json_release) =
        !as_it_is && strlen(text) == n && nb_json_is_utf8(text) ? cJSON_Parse(text) : NULL,
                *record;
    if (cJSON_IsObject(json)) {
        cJSON_ArrayForEach(record, nb_json_get(json, "records")) {
            if (cJSON_IsObject(record)) nb_json_add_sum(record);
        }
        nb_json_add_sum(json);
        nb_json_print(json, &summed);
    } else {
        nb_strbuf_addn(&summed, (const char *)bytes + as_it_is, n - as_it_is);
    }
    return fuzz_file_in(folder, name, (const uint8_t *)summed.text, summed.len);
}

/* ---- a run: results.json, or the journal that is folded to one ---- */

/* What was read is written in a form that reads as the same. */
static void read_again(const struct nb_results *results) {
    struct nb_strbuf once released_by(nb_strbuf_release) = {0}, twice released_by(nb_strbuf_release) = {0};
    struct nb_results again released_by(nb_results_release) = {0};
    nb_results_print(results, &once);
    char *dir freed = fuzz_file_in("again", NB_RESULTS_FILE, (const uint8_t *)once.text, once.len);
    fuzz_check(nb_results_read(&again, dir) == 0, "what is written can be read");
    nb_results_print(&again, &twice);
    fuzz_same(once.text, twice.text, "results read as what they were written from");
}

static const char *const formats[] = {"table", "markdown", "json"};

/* Every format prints every run, but for that of comparisons where nothing is compared. */
static void render_all(const struct nb_results *results) {
    const cJSON *plan = nb_json_get(results->meta, "plan");
    const bool compares = nb_json_get(plan, "compare") != NULL;
    for (size_t i = 0; nb_renderer_at(i); i++) {
        const bool may_refuse = !compares && strncmp(nb_renderer_at(i)->name, "peers", 5) == 0;
        fuzz_page_end(nb_renderer_at(i)->render(results, fuzz_page_begin()) == 0 || may_refuse,
                      "results can be rendered");
    }
}

static void show_results(const char *dir) {
    struct nb_results results released_by(nb_results_release) = {0};
    struct nb_figures figures = {0};
    if (nb_results_read(&results, dir) == 0) {
        render_all(&results);
        nb_figures_init(&figures, &results);
        nb_figures_release(&figures);
        read_again(&results);
    }
}

void fuzz_results(const uint8_t *bytes, size_t n) {
    char *dir freed = write_document("results", NB_RESULTS_FILE, bytes, n);
    show_results(dir);
}

/* Lines whose sum does not fit are as if they were not there, so the sum of a line that ends with one is put right, unless the line begins
 * with '!', which is taken away. */
static void add_with_sums(struct nb_strbuf *out, char *text) {
    static const char mark[] = ",\"sum\":\"";
    const size_t end = sizeof mark - 1 + 16 + 2;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        const bool is_whole = next != NULL, as_it_is = *line == '!';
        const size_t n = is_whole ? (size_t)(next - line) : strlen(line);
        if (is_whole) next++;
        if (!as_it_is && n > end && memcmp(line + n - end, mark, sizeof mark - 1) == 0) {
            nb_strbuf_addn(out, line, n - end);
            nb_strbuf_addf(out, "%s%016llx\"}", mark, (unsigned long long)nb_hash(NB_HASH_EMPTY, line, n - end));
        } else {
            nb_strbuf_addn(out, line + as_it_is, n - as_it_is);
        }
        if (is_whole) nb_strbuf_add(out, "\n");
    }
}

static char *write_journal(const char *folder, const uint8_t *bytes, size_t n) {
    struct nb_strbuf journal released_by(nb_strbuf_release) = nb_strbuf_empty();
    char *text freed = fuzz_text(bytes, n, NULL);
    add_with_sums(&journal, text);
    return fuzz_file_in(folder, NB_JOURNAL_FILE, (const uint8_t *)journal.text, journal.len);
}

void fuzz_journal(const uint8_t *bytes, size_t n) {
    char *dir freed = write_journal("journal", bytes, n), *results freed = nb_path_join(dir, NB_RESULTS_FILE);
    unlink(results); /* else it would be read instead */
    show_results(dir);
}

/* ---- two runs, with a null byte between them ---- */

struct folders {
    char *dirs[2];
};

static struct folders two_folders(const uint8_t *bytes, size_t n) {
    size_t rest;
    char *first freed = fuzz_text(bytes, n, &rest);
    struct folders f = {{write_document("first", NB_RESULTS_FILE, bytes, strlen(first)),
                         write_document("second", NB_RESULTS_FILE, bytes + n - rest, rest)}};
    return f;
}

static void release_folders(struct folders *f) {
    for (int i = 0; i < 2; i++) free(f->dirs[i]);
}

void fuzz_merge(const uint8_t *bytes, size_t n) {
    struct folders f = two_folders(bytes, n);
    struct nb_results merged released_by(nb_results_release) = {0};
    if (nb_results_merge(&merged, (const char *const *)f.dirs, 2, n % 2) == 0) {
        fuzz_page_end(nb_renderer_find("table")->render(&merged, fuzz_page_begin()) == 0,
                      "merged results can be shown");
        read_again(&merged);
    }
    release_folders(&f);
}

void fuzz_compare(const uint8_t *bytes, size_t n) {
    struct folders f = two_folders(bytes, n);
    struct nb_results runs[2] = {{0}};
    struct nb_comparison c = {0};
    const struct nb_filters all = {0};
    const bool read = nb_results_read(&runs[0], f.dirs[0]) == 0 && nb_results_read(&runs[1], f.dirs[1]) == 0;
    if (read && nb_comparison_make(&c, &runs[0], &runs[1], &all) == 0) {
        for (int i = 0; i < 3; i++)
            fuzz_page_end(nb_compare_print(&c, 1, formats[i], fuzz_page_begin()) == 0, "a comparison can be printed");
        nb_comparison_is_whole(&c);
        nb_comparison_release(&c);
    }
    for (int i = 0; i < 2; i++) nb_results_release(&runs[i]);
    release_folders(&f);
}

/* ---- what stress and claims leave ---- */

/* As `normbench report` does: what was searched is judged again, and drawn as it stands. */
void fuzz_stress(const uint8_t *bytes, size_t n) {
    char *dir freed = write_document("stress", NB_STRESS_FILE, bytes, n);
    struct nb_results results released_by(nb_results_release) = {.meta = cJSON_CreateObject()};
    struct nb_grades grades released_by(nb_grades_release);
    struct nb_searched searched;
    struct nb_figures figures;
    cJSON *read released_by(nb_json_release) = nb_stress_read(dir);
    nb_grades_make(&grades, &results, NULL);
    nb_searched_read(&searched, dir);
    cJSON *judged released_by(nb_json_release) = nb_stress_judge(&results, &grades, &searched);
    for (int i = 0; i < 6; i++) {
        const cJSON *stress = i < 3 ? read : judged;
        if (!stress) continue;
        fuzz_page_end(nb_stress_print(stress, &results, formats[i % 3], fuzz_page_begin()) == 0,
                      "a judgement can be printed");
    }
    if (read) {
        nb_stress_figures_init(&figures, read);
        nb_figures_release(&figures);
    }
    cJSON_Delete(searched.list);
}

void fuzz_claims(const uint8_t *bytes, size_t n) {
    char *dir freed = write_document("claims", NB_CLAIMS_FILE, bytes, n);
    cJSON *document released_by(nb_json_release) = nb_claims_document_read(dir);
    if (document) {
        struct nb_figures figures released_by(nb_figures_release) = {0};
        struct nb_strbuf tables released_by(nb_strbuf_release) = {0};
        const struct nb_results meta = {.meta = document};
        for (int i = 0; i < 3; i++)
            fuzz_page_end(nb_claims_print(document, formats[i], fuzz_page_begin()) == 0, "verdicts can be printed");
        nb_claims_training_tables(&(struct nb_claims_page){.html = true, .out = &tables}, document);
        nb_claims_training_figures(&figures, document, &meta);
    }
}

/* PyTorch's answers, which are a journal of their own. */
void fuzz_training(const uint8_t *bytes, size_t n) {
    char *dir freed = write_journal("training", bytes, n);
    struct nb_torch_results r released_by(nb_torch_results_release) = {0};
    if (nb_journal_read(dir, take_answer, &r) == 0) {
        const cJSON *answer;
        cJSON_Delete(nb_training_to_json(&r));
        const struct nb_torch_question q = {NB_TORCH_COURSE, "tiny-transformer", 100};
        cJSON_ArrayForEach(answer, r.answers) nb_torch_answer_arm(answer, &q, "layernorm");
    }
}
