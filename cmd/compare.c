// SPDX-License-Identifier: Apache-2.0
/* normbench compare: two runs side by side. A report; whether something became slower is the gate's question. */
#include <stdio.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/run/report.h"
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
    "  --filter GLOB        only cases whose key contains this text or matches this glob; repeatable\n"
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

static bool parse(struct options *o, int argc, char **argv, int *exit_code) {
    const struct nb_option options[] = {{"filter", .texts = &o->filters},
                                        {"strict", .flag = &o->strict},
                                        {"format", .text = &o->format, .among = nb_table_markdown_json},
                                        {.name = NULL}};
    if (!nb_read_options(&nb_command_compare, options, NB_ANY_ARGUMENTS, argc, argv, exit_code)) return false;
    if (argc - optind != NB_N_SIDES) {
        nb_error("compare: two folders are needed, %d are given; see `normbench compare --help`", argc - optind);
        return false;
    }
    for (int side = 0; side < NB_N_SIDES; side++) o->dirs[side] = argv[optind + side];
    return true;
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

static int compare_main(int argc, char **argv) {
    struct options o = {.format = "table"};
    struct nb_results runs[NB_N_SIDES] = {{0}};
    int exit_code;
    if (!parse(&o, argc, argv, &exit_code)) goto out;
    for (int side = 0; side < NB_N_SIDES; side++)
        if (nb_results_read(&runs[side], o.dirs[side]) != 0) goto out;
    exit_code = compare(&o, runs);
out:
    for (int side = 0; side < NB_N_SIDES; side++) nb_results_release(&runs[side]);
    nb_texts_release(&o.filters);
    return exit_code;
}

const struct nb_command nb_command_compare = {"compare", "puts two runs side by side", help, compare_main};
