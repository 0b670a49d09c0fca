// SPDX-License-Identifier: Apache-2.0
/* Help for the targets: properties, and files for those that read files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/figures/plots.h"
#include "reports/run/report.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/record/record.h"
#include "tests/fuzz/fuzz.h"

void fuzz_check(int holds, const char *property) {
    if (holds) return;
    fprintf(stderr, "does not hold: %s\n", property);
    abort();
}

void fuzz_same(const char *a, const char *b, const char *property) {
    size_t at = 0;
    while (a[at] && a[at] == b[at]) at++;
    if (a[at] == b[at]) return;
    size_t from = at > 100 ? at - 100 : 0;
    fprintf(stderr, "first:  %.200s\nsecond: %.200s\n", a + from, b + from);
    fuzz_check(0, property);
}

char *fuzz_text(const uint8_t *bytes, size_t n) {
    char *text = nb_alloc(n + 1, 1);
    memcpy(text, bytes, n);
    return text;
}

/* libFuzzer leaves without atexit(), so the folder is made and removed by whoever starts it, or stays. */
static const char *own_folder(void) {
    static char made[] = "/tmp/normbench-fuzz-XXXXXX";
    static const char *folder;
    if (!folder) folder = getenv("FUZZ_FOLDER");
    if (!folder) folder = mkdtemp(made);
    fuzz_check(folder != NULL, "a folder can be made");
    return folder;
}

const char *fuzz_file(const char *name, const uint8_t *bytes, size_t n) {
    char *path = nb_path_join(own_folder(), name);
    FILE *f = fopen(path, "wb");
    fuzz_check(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, "a file can be written");
    free(path);
    return own_folder();
}

/* What was read is written in a form that reads as the same. */
static void read_again(const struct nb_results *results) {
    struct nb_strbuf once = {0}, twice = {0};
    struct nb_results again = {0};
    nb_results_print(results, &once);
    const char *dir = fuzz_file(NB_RESULTS_FILE, (const uint8_t *)once.text, once.len);
    fuzz_check(nb_results_read(&again, dir) == 0, "what is written can be read");
    nb_results_print(&again, &twice);
    fuzz_same(once.text, twice.text, "results read as what they were written from");
    nb_results_release(&again);
    nb_strbuf_release(&once);
    nb_strbuf_release(&twice);
}

void fuzz_results(const char *dir) {
    struct nb_results results = {0};
    struct nb_figures figures = {0};
    if (nb_results_read(&results, dir) == 0) {
        FILE *nowhere = fopen("/dev/null", "w");
        fuzz_check(nowhere != NULL, "/dev/null can be opened");
        for (size_t i = 0; nb_renderer_at(i); i++)
            fuzz_check(nb_renderer_at(i)->render(&results, nowhere) == 0, "results can be rendered");
        fclose(nowhere);
        nb_figures_init(&figures, &results);
        nb_figures_release(&figures);
        read_again(&results);
    }
    nb_results_release(&results);
}
