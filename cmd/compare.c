// SPDX-License-Identifier: Apache-2.0
/* normbench compare: two runs side by side. A report; whether something became slower is the gate's question. */
#include <stdio.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/run/compare_report.h"
#include "src/core/log.h"
#include "src/record/comparison.h"

extern const struct nb_command nb_command_compare;

static const char help[] =
    "usage: normbench compare BEFORE AFTER [OPTIONS]\n"
    "\n"
    "Puts the results of two runs side by side: what differs between the machines, builds and plans, then the cases that both\n"
    "have. BEFORE and AFTER are folders that `normbench run` or `merge` left; nothing is written to them.\n"
    "\n"
    "Two ratios are ranked, since each was measured in pairs inside its run: the time over that of the roof, and over that\n"
    "of the group's reference case. The ratio of the times themselves is only shown, and not across CPUs. Cases that are noisy,\n"
    "failed, or were measured by another plan are listed with the reason and not ranked. This is a report: it never says that\n"
    "a change made something slower; `normbench gate` does.\n"
    "\n"
    "  --filter GLOB        only cases whose key, or its first parts, match; repeatable\n"
    "  --strict             exit 5 unless every case is in both runs and ranked, on one kind of CPU, by one plan\n"
    "  --format NAME        table (the default), markdown or json (reports/schema/compare.schema.json)\n" NB_COMMON_HELP
    "\n"
    "Exit codes: 0 ok, whatever the figures say; 2 a folder holds no results, or no case is left; 5 with --strict: not all of\n"
    "it is comparable.\n";

struct options {
    struct nb_texts filters;
    const char *format, *dirs[NB_N_SIDES];
    bool strict;
};

static int check(struct options *o, int argc, char **argv) {
    if (argc - optind != NB_N_SIDES)
        return nb_error("compare: two folders are needed, %d are given; `normbench compare --help` tells more",
                        argc - optind);
    if (!nb_compare_format_known(o->format))
        return nb_error("compare: --format %s: table, markdown or json", o->format);
    for (size_t i = 0; i < o->filters.n; i++)
        if (!*o->filters.items[i]) return nb_error("compare: --filter is empty");
    for (int side = 0; side < NB_N_SIDES; side++) o->dirs[side] = argv[optind + side];
    return 0;
}

/* Returns true when the command is to go on; else *exit_code holds how it ends. */
static bool parse(struct options *o, int argc, char **argv, int *exit_code) {
    enum { FILTER = 1, STRICT, FORMAT };
    static const struct option options[] = {{"filter", required_argument, NULL, FILTER},
                                            {"strict", no_argument, NULL, STRICT},
                                            {"format", required_argument, NULL, FORMAT},
                                            NB_COMMON_OPTIONS};
    bool done = false;
    for (int id; (id = nb_next_option(argc, argv, options, &nb_command_compare, &done, exit_code)) != -1;) {
        if (id == FILTER) nb_texts_add(&o->filters, optarg);
        if (id == STRICT) o->strict = true;
        if (id == FORMAT) o->format = optarg;
    }
    if (done) return false;
    *exit_code = NB_EXIT_USAGE;
    return check(o, argc, argv) == 0;
}

static int compare(const struct options *o, const struct nb_results *runs) {
    const struct nb_filters filters = {o->filters.items, o->filters.n};
    struct nb_comparison comparison;
    if (nb_comparison_make(&comparison, &runs[NB_BEFORE], &runs[NB_AFTER], &filters) != 0) return NB_EXIT_USAGE;
    int exit_code = nb_compare_print(&comparison, o->format, stdout) == 0 ? NB_EXIT_OK : NB_EXIT_USAGE;
    if (exit_code == NB_EXIT_OK && o->strict && !nb_comparison_is_whole(&comparison))
        exit_code = NB_EXIT_NOT_COMPARABLE;
    nb_comparison_release(&comparison);
    return exit_code;
}

static int run(int argc, char **argv) {
    struct options o = {.format = "table"};
    struct nb_results runs[NB_N_SIDES] = {{0}};
    int exit_code;
    if (!parse(&o, argc, argv, &exit_code)) goto out;
    exit_code = NB_EXIT_USAGE;
    for (int side = 0; side < NB_N_SIDES; side++)
        if (nb_results_read(&runs[side], o.dirs[side]) != 0) goto out;
    exit_code = compare(&o, runs);
out:
    for (int side = 0; side < NB_N_SIDES; side++) nb_results_release(&runs[side]);
    nb_texts_release(&o.filters);
    return exit_code;
}

const struct nb_command nb_command_compare = {"compare", "put two runs side by side", help, run};
