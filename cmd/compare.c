// SPDX-License-Identifier: Apache-2.0
/* normbench compare: runs side by side. A report; whether something became slower is the gate's question. */

#include "cmd/shared/options.h"
#include "reports/run/report.h"
#include "src/core/log.h"
#include "src/record/record.h"

static const char help[] =
    "usage: normbench compare BEFORE [BETWEEN...] AFTER [OPTIONS]\n"
    "\n"
    "Put the results of two runs side by side: what differs between the machines, builds and plans, then the cases that both\n"
    "have. Runs are folders that `normbench run` or `merge` left; nothing is written to them. With more than two, the last is\n"
    "compared with the first, and a table follows each of their cases through the runs between.\n"
    "\n"
    "Two ratios are ranked, since each was measured in pairs inside its run: the time over that of the copy, and over that\n"
    "of the group's reference case. The ratio of the times themselves is only shown, and not across CPUs. Cases that are noisy,\n"
    "failed, or were measured by another plan are listed with the reason and not ranked. This is a report: it never says that\n"
    "a change made something slower; `normbench gate` does.\n"
    "\n"
    "  --filter GLOB        only cases whose key contains this text or matches this glob; repeatable\n"
    "  --strict             exit with 5 unless every case is in all runs and ranked, on one kind of CPU, by one plan\n"
    "  --format NAME        table (the default), markdown or json (reports/schema/compare.schema.json)\n" NB_COMMON_HELP
    "\n"
    "Example: normbench compare results/*\n"
    "Exit codes: 0 ok, whatever the figures say; 2 a folder holds no results, or no case is left; 5 with --strict: not all of\n"
    "it is comparable.\n";

struct options {
    struct nb_strings filters;
    const char *format;
    bool strict;
};

static bool parse(struct options *o, int argc, char **argv, int *exit_code) {
    const struct nb_option options[] = {{"filter", .texts = &o->filters},
                                        {"strict", .flag = &o->strict},
                                        {"format", .text = &o->format, .among = nb_table_markdown_json},
                                        {.name = NULL}};
    if (!nb_read_options(help, options, NB_ANY_ARGUMENTS, argc, argv, exit_code)) return false;
    if (argc - optind >= 2) return true;
    nb_error("compare: two folders are needed, %d are given; see `normbench compare --help`", argc - optind);
    return false;
}

/* Each of the runs behind the first with it. */
static int compare(const struct options *o, const struct nb_results *runs, struct nb_comparison *comparisons,
                   size_t n) {
    const struct nb_filters filters = {(const char *const *)o->filters.items, o->filters.n};
    bool whole = true;
    for (size_t i = 0; i < n; i++) {
        if (nb_comparison_make(&comparisons[i], &runs[0], &runs[i + 1], &filters) != 0) return NB_EXIT_USAGE;
        whole &= nb_comparison_is_whole(&comparisons[i]);
    }
    if (nb_compare_print(comparisons, n, o->format, stdout) != 0) return NB_EXIT_USAGE;
    return o->strict && !whole ? NB_EXIT_NOT_COMPARABLE : NB_EXIT_OK;
}

static void release(struct options *o) { nb_strings_release(&o->filters); }

static int compare_main(int argc, char **argv) {
    struct options o released_by(release) = {.format = "table"};
    int exit_code, result = 0;
    if (!parse(&o, argc, argv, &exit_code)) return exit_code;
    const size_t n = (size_t)(argc - optind);
    struct nb_results *runs freed = nb_alloc(n, sizeof *runs);
    struct nb_comparison *comparisons freed = nb_alloc(n, sizeof *comparisons);
    for (size_t i = 0; i < n && result == 0; i++) result = nb_results_read(&runs[i], argv[optind + (int)i]);
    if (result == 0) exit_code = compare(&o, runs, comparisons, n - 1);
    for (size_t i = 0; i < n; i++) {
        nb_comparison_release(&comparisons[i]);
        nb_results_release(&runs[i]);
    }
    return exit_code;
}

const struct nb_command nb_command_compare = {"compare", "put runs side by side", help, compare_main};
