// SPDX-License-Identifier: Apache-2.0
/* normbench history: cases over many runs. A report, as compare is. */
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/run/report.h"
#include "reports/run/summary.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/record/comparison.h"

extern const struct nb_command nb_command_history;

static const char help[] =
    "usage: normbench history DIR... [OPTIONS]\n\n"
    "Follows cases over many runs, by the one figure that can be: the time over that of the group's reference case, which was\n"
    "measured in pairs inside each run, so that the state of the machine cancels. DIR are folders that `normbench run` or\n"
    "`merge` left, in any order: the time at which they started decides; of copies of one run the first is taken. A case is\n"
    "followed on the CPU that its last run had. Nothing is written to the folders. A report: whether a change made something\n"
    "slower is what `normbench gate` says.\n\n"
    "  --filter GLOB        only cases whose key contains this text or matches this glob; repeatable\n"
    "  --format NAME        table (the default) or markdown: a line for each case; csv or json: each case in each run\n"
    "  --out DIR            plots of the cases that changed most: DIR/plots/\n" NB_COMMON_HELP "\n"
    "Example: normbench history results/*\n"
    "Exit codes: 0 ok, whatever the figures say; 2 a folder holds no results, no run is left, or no case has\n"
    "a ratio to a reference.\n";

static const char *started(const struct nb_results *r) { return nb_meta_text(r, "started"); }

/* One run under two names, or a copy of it: two runs that begin within one second differ in how long they take. */
static bool is_same_run(const struct nb_results *a, const struct nb_results *b) {
    static const char *const paths[] = {"started", "shard", "plan", "fingerprint", "elapsed_s"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const cJSON *mine = nb_meta(a, paths[i]), *other = nb_meta(b, paths[i]);
        if ((mine || other) && !cJSON_Compare(mine, other, true)) return false;
    }
    return true;
}

/* Puts a run behind those that began no later; a run that cannot be placed, or is there already, is released. */
static size_t place(struct nb_results *runs, size_t n, struct nb_results *r) {
    size_t at = n;
    const char *left_out = *started(r) ? NULL : "its results do not say when it began";
    for (size_t i = 0; i < n && !left_out; i++)
        if (is_same_run(&runs[i], r)) left_out = runs[i].dir;
    if (left_out) {
        nb_warn(*started(r) ? "%s: left out, the same run as %s" : "%s: left out, %s", r->dir, left_out);
        nb_results_release(r);
        return n;
    }
    for (; at > 0 && strcmp(started(&runs[at - 1]), started(r)) > 0; at--) runs[at] = runs[at - 1];
    runs[at] = *r;
    return n + 1;
}

static int show(const struct nb_history *h, const char *format, const char *dir) {
    if (nb_history_print(h, format, stdout) != 0) return NB_EXIT_USAGE;
    if (dir && (nb_dir_make(dir) != 0 || nb_history_plot(h, dir) != 0)) return NB_EXIT_USAGE;
    return NB_EXIT_OK;
}

static int history_main(int argc, char **argv) {
    struct nb_texts filters = {0};
    const char *format = "table", *dir = NULL;
    const struct nb_option options[] = {{"filter", .texts = &filters},
                                        {"format", .text = &format, .among = nb_table_markdown_csv_json},
                                        {"out", .text = &dir},
                                        {.name = NULL}};
    struct nb_results *runs = NULL;
    struct nb_history h = {0};
    size_t n = 0;
    int exit_code;
    if (!nb_read_options(&nb_command_history, options, NB_ANY_ARGUMENTS, argc, argv, &exit_code)) goto out;
    if (optind == argc) {
        nb_error("history: folders of runs are needed; see `normbench history --help`");
        goto out;
    }
    runs = nb_alloc((size_t)(argc - optind) + 1, sizeof *runs);
    for (int i = optind; i < argc; i++) {
        struct nb_results r;
        if (nb_results_read(&r, argv[i]) != 0) goto out;
        n = place(runs, n, &r);
    }
    if (n == 0) {
        nb_error("history: no run is left");
        goto out;
    }
    if (nb_history_make(&h, runs, n, &(struct nb_filters){filters.items, filters.n}) == 0)
        exit_code = show(&h, format, dir);
out:
    nb_history_release(&h);
    for (size_t i = 0; i < n; i++) nb_results_release(&runs[i]);
    free(runs);
    nb_texts_release(&filters);
    return exit_code;
}

const struct nb_command nb_command_history = {"history", "follows cases over many runs", help, history_main};
