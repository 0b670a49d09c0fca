// SPDX-License-Identifier: Apache-2.0
/* normbench run: plans a matrix, measures it, leaves a folder with journal, results, plots and page, prints a summary. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "cmd/shared/run_plan.h"
#include "reports/run/report.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/peers/peer_comparison.h"
#include "src/plan/cells.h"
#include "src/record/record.h"

static const char help[] =
    "usage: normbench run [CONFIG] [OPTIONS]\n\n"
    "Measure a matrix of kernels: check each case against an exact oracle, time it interleaved with the others of its\n"
    "group and with a copy (the same loads and stores without arithmetic), and count events where the machine can.\n"
    "CONFIG is a preset's name (`normbench list configs`) or a file, with a slash or .json in its name; without it: quick.\n\n"
    "What to run\n"
    "  --axis NAME=V1,V2    replace an axis in every block (`normbench list axes`); repeatable; of one axis the last wins\n"
    "  --filter GLOB        only cases whose key (--list prints it) contains this text, or matches this glob as a whole or\n"
    "                       up to a slash; repeatable: any may match\n"
    "  --max-width WIDTH    hide wider kernels: scalar, 128, 256, 256x, 512\n"
    "  --plugin FILE        add the kernels of a .so, .py or program; repeatable. A preset gets a case for each of them, of\n"
    "                       its own dtype, pass and (BatchNorm) both layouts, beside those that its blocks select\n" NB_LOAD_TIMEOUT_HELP
        NB_PEER_HELP
    "  --budget SECONDS     checks and launches take about as long, the start and the report apart: cases are dropped,\n"
    "                       evenly over the plan and those of plugins last, until the estimate with the fewest launches fits,\n"
    "                       and groups of cases while it runs, where they take longer than estimated, those that answer the\n"
    "                       summary's first lines last; what is left goes to more launches\n"
    "  --shard I/N          the I-th of N parts, by whole groups; `normbench merge` puts them together\n"
    "  --list               print the cases, what does not apply and why, and the time it would take; run nothing;\n"
    "                       with --format variants the kernels that they need, whether these are built or not\n\n"
    "How to run\n"
    "  --launches N:M       worker processes for each group: at least N, and up to M while one of its ratios is less exact\n"
    "                       than the aim and time is left; N alone: exactly N (6 are the fewest that give an interval),\n"
    "                       with no budget but --budget; 0: check the cases and time nothing\n"
    "  --aim PERCENT        half-width of the ratios' intervals at which a group has had enough launches (default 0.5)\n"
    "  --blocks N           random orders of all arms in one launch\n"
    "  --case-timeout S     end a case that makes no progress for so long (default 20)\n"
    "  --no-counters        skip the counter pass\n"
    "  --no-stress          do not check a plugin's kernels on the rows of `normbench stress` too\n\n"
    "Results\n"
    "  --out DIR            the folder (default results/TIME-CONFIG): journal.jsonl, results.json, plots/, index.html\n"
    "  --resume DIR         resume where a run was cut off; takes no option that would change the plan\n"
    "  --format NAME        what stdout gets at the end: summary (the default), table (every case), or another of\n"
    "                       `normbench list formats`\n"
    "  --no-plots           write no plots and no page\n" NB_TUNING_HELP NB_COMMON_HELP "\n"
    "Example: normbench run quick --axis op=layernorm --budget 30\n"
    "Exit codes: 0 all cases ok, 1 a case failed, 2 usage or configuration, 5 --resume on another CPU, 77 nothing selected\n"
    "can run here, 128+n ended by signal n (what is done is kept; --resume continues).\n";

struct run_options {
    struct nb_plan_request request;
    struct nb_output_options output;
    bool no_counters, no_stress;
};
static const struct run_options usual = {.request = NB_PLAN_REQUEST_INIT, .output.case_timeout_s = 20};

/* Of a budget, for plugins' kernels on the rows of stress. */
static const double KEPT_FOR_STRESS = 0.25;

static bool parse(struct run_options *o, int argc, char **argv, int *exit_code) {
    struct nb_plan_request *q = &o->request;
    const struct nb_option options[] = {NB_OUTPUT_OPTIONS(&o->output),
                                        {"format", .text = &o->output.format},
                                        {"no-counters", .flag = &o->no_counters},
                                        {"no-stress", .flag = &o->no_stress},
                                        NB_PLAN_OPTIONS(q),
                                        NB_SHARD_OPTION(q),
                                        NB_TUNING_OPTION,
                                        {.name = NULL}};
    if (!nb_read_options(help, options, 1, argc, argv, exit_code)) return false;
    const char *format = o->output.format;
    if (optind < argc) q->config = argv[optind];
    if (!format || nb_renderer_find(format) || strcmp(format, "variants") == 0) return true;
    nb_error("--format %s: `normbench list formats` has the names", format);
    return false;
}

/* ---- of a run that compares: what looks behind is measured again, in fresh processes --------------------------------- */

/* Both sides of each comparison that looks behind. */
static void suspects(const struct nb_peer_comparisons *comparisons, struct nb_strings *keys) {
    for (size_t i = 0; i < comparisons->n; i++) {
        const struct nb_peer_comparison *d = &comparisons->items[i];
        if (d->verdict != NB_PEER_COMPARISON_LOOKS_BEHIND && d->n_confirmed == 0) continue;
        nb_strings_add(keys, d->ours->key);
        nb_strings_add(keys, d->theirs->key);
    }
}

static int run_again(const struct nb_measuring *first, struct nb_config *config, const struct nb_strings *keys,
                     double left_s, const char *dir) {
    const struct nb_plan_options options = {.filters = (const char *const *)keys->items, .n_filters = keys->n};
    struct nb_plan plan released_by(nb_plan_release) = {0};
    config->launches = config->most_launches = config->compare.confirm_launches;
    config->budget_s = 0; /* no case is left out that has not been tried */
    config->order_seed++; /* other orders and offsets than those that looked behind */
    int result = nb_plan_make(&plan, config, &options);
    if (result == 0 && plan.n_cases > 0) {
        plan.budget_s = fmax(left_s, 1e-9); /* over already: all is left out, and its records say so */
        nb_note("%zu cases look behind: measured again", plan.n_cases);
        result = nb_measuring_beside(first, &plan, first->config, dir, NB_CONFIRM_FOLDER, NULL);
    }
    return result;
}

/* DIR/confirm: a run of its own with the cases that look behind in the run in dir, which has ended; goes on with one that was cut off.
 * left_s: of the budget. Changes config's launches and seed. As nb_run_plan(): 0, -1 after nb_error, or the signal that ended it. */
static int confirm(const struct nb_measuring *first, struct nb_config *config, double left_s, const char *dir) {
    struct nb_results results released_by(nb_results_release) = {0};
    struct nb_peer_comparisons comparisons released_by(nb_peer_comparisons_release) = {0};
    struct nb_strings keys released_by(nb_strings_release) = {0};
    if (config->compare.ours.n == 0 || config->compare.confirm_launches == 0) return 0;
    int result = nb_results_fold(&results, dir);
    if (result == 0) result = nb_peer_comparisons_make(&comparisons, &results);
    if (result == 0) suspects(&comparisons, &keys);
    return keys.n > 0 ? run_again(first, config, &keys, left_s, dir) : result;
}

/* ---- after the measuring ------------------------------------------------------------------------------------------- */

/* A run that says nothing must not look like one in which all is well. */
static int refuse_empty(const struct nb_results *results) {
    const struct nb_record *skipped = NULL;
    size_t n_over = 0;
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        const bool is_over = nb_record_is_over_budget(r);
        if (r->has_timing || (r->status != NB_SKIPPED && r->status != NB_NOT_RUN && !is_over)) return 0;
        n_over += is_over;
        if (r->status == NB_SKIPPED) skipped = r;
    }
    if (n_over == 0 && skipped)
        return nb_error("none of the %zu cases was measured: %s", results->n, skipped->reason ? skipped->reason : "");
    if (n_over == 0) return 0;
    return nb_error("the budget was over before a single case was timed; give more, or leave --budget out");
}

static int report(const struct run_options *o, const char *dir, bool compares, size_t *n_failed) {
    struct nb_results results released_by(nb_results_release) = {0};
    if (nb_results_fold(&results, dir) != 0) return -1;
    *n_failed = nb_results_failed(&results);
    const char *format = o->output.format ? o->output.format : compares ? "peers" : "summary";
    int result = nb_renderer_find(format)->render(&results, stdout);
    fflush(stdout);
    if (nb_results_write(&results, dir) != 0 || (compares && nb_peers_write(&results, dir) != 0) ||
        (!o->output.no_plots && nb_html_write(&results, dir) != 0))
        result = -1;
    else
        nb_note("results: %s/results.json%s%s%s", dir,
                o->output.no_plots ? "" : "; page: ", o->output.no_plots ? "" : dir,
                o->output.no_plots ? "" : "/index.html");
    return refuse_empty(&results) == 0 ? result : -1;
}

static int measure(const struct run_options *o, const struct nb_plan *plan, struct nb_config *config, int argc,
                   char **argv) {
    struct nb_measuring m = nb_measuring_of(&o->request, &o->output, argc, argv);
    const bool holds = isfinite(plan->budget_s);
    const double until_s = nb_now_s() + plan->budget_s,
                 kept_s = holds ? o->request.options.kept_share * plan->budget_s : 0; /* for plugins */
    size_t n_failed = 0;
    bool began;
    m.plan = plan;
    m.config = config->name;
    m.no_counters = o->no_counters;
    m.confirms = true;
    char *dir freed = nb_measuring_folder(&m);
    int ended = nb_measuring_run(&m, dir, &began);
    if (began && ended == 0) ended = confirm(&m, config, until_s - kept_s - nb_now_s(), dir);
    if (began && ended == 0 && !o->no_stress)
        ended = nb_measuring_check_plugins(&m, holds ? until_s - nb_now_s() : 0, holds, dir);
    const bool is_whole = began && report(o, dir, config->compare.ours.n > 0, &n_failed) == 0 && ended >= 0;
    return ended > 0      ? nb_ended_by(ended, "run", began ? dir : NULL)
           : n_failed > 0 ? NB_EXIT_FAILED
           : is_whole     ? NB_EXIT_OK
                          : NB_EXIT_USAGE;
}

static void release(struct run_options *o) { nb_plan_request_release(&o->request); }

/* --resume: the plan is made from the command line that the journal holds; what this one says besides counts more. */
static bool take_resumed(struct run_options *o, struct nb_strings *saved, int argc, char **argv, int *exit_code) {
    if (!nb_journaled_argv_read(saved, o->output.resume, "run", &o->output, &o->request, exit_code)) return false;
    release(o);
    *o = usual;
    return parse(o, (int)saved->n, saved->items, exit_code) && parse(o, argc, argv, exit_code);
}

/* --list --format variants: before anything is built. */
static int print_variants(const struct run_options *o, struct nb_config *config) {
    if (!o->output.list) return nb_error("--format variants: with --list alone"), NB_EXIT_USAGE;
    if (nb_plan_request_config(&o->request, config) != 0) return NB_EXIT_USAGE;
    nb_config_print_variants(config, stdout);
    return NB_EXIT_OK;
}

static int run_main(int argc, char **argv) {
    struct run_options o released_by(release) = usual;
    struct nb_strings saved released_by(nb_strings_release) = {0};
    struct nb_config config released_by(nb_config_release) = {0};
    struct nb_plan plan released_by(nb_plan_release) = {0};
    int exit_code;
    if (!parse(&o, argc, argv, &exit_code)) return exit_code;
    if (o.output.resume && !take_resumed(&o, &saved, argc, argv, &exit_code)) return exit_code;
    if (o.output.format && strcmp(o.output.format, "variants") == 0) return print_variants(&o, &config);
    o.request.plugins_join = true;
    if (!o.no_stress) o.request.kept_for_plugins = KEPT_FOR_STRESS;
    if (nb_plan_request_make(&o.request, &config, &plan) != 0) return NB_EXIT_USAGE;
    if (!nb_plan_only_shown(&plan, &config, o.output.list, o.output.format, &exit_code))
        exit_code = measure(&o, &plan, &config, argc, argv);
    return exit_code;
}

const struct nb_command nb_command_run = {"run", "measure a matrix of kernels on real input", help, run_main};
