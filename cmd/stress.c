// SPDX-License-Identifier: Apache-2.0
/* normbench stress: checks kernels on rows that are hard, searches for harder ones, and grades what came out. */
#include <stdio.h>

#include "cmd/shared/options.h"
#include "cmd/shared/run_plan.h"
#include "reports/lab/stress_report.h"
#include "reports/run/report.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/lab/stress/stress.h"
#include "src/record/record.h"

static const char help[] =
    "usage: normbench stress [CONFIG] [OPTIONS]\n\n"
    "Check kernels against an exact oracle on rows that are hard (special rows, heavy tails, massive activations,\n"
    "every exponent, large offsets, inputs of public bug reports), search for the worst rows and for how far each\n"
    "kernel can be taken, and grade each variant with each formula, once over the range that the kernel declares (if it\n"
    "declares none, that of our own kernels) and once over all finite inputs:\n"
    "  A+ correctly rounded everywhere\n"
    "  A  within 1 ulp, without bias\n"
    "  B  within the a-priori bound of its algorithm, and half of the digits right in norm\n"
    "  C  at most twice the effect of half an ulp of input noise\n"
    "  D  right in norm but not in single elements, or within the bound and at most 10 % off in norm\n"
    "  F  NaN, Inf or 0 where a number belongs, or none of these\n"
    "Without CONFIG: the presets stress and bugs.\n\n"
    "What to stress\n"
    "  --kernel GLOBS       kernels, with commas between (default: all; with --plugin those of the plugins)\n"
    "  --plugin FILE        add the kernels of a .so, .py or program, and stress them alone; repeatable\n" NB_LOAD_TIMEOUT_HELP
        NB_PEER_HELP "  --dtype LIST         of the dtypes that the config names only these: f32, f16, bf16\n"
    "  --width LIST         scalar, 128, 256, 256x, 512\n"
    "  --axis NAME=V1,V2    replace an axis in every block; repeatable\n"
    "  --filter GLOB        only cases whose key contains this text or matches this glob; repeatable\n"
    "  --max-width WIDTH    hide wider kernels\n"
    "  --budget SECONDS     drop cases, evenly over the plan, until the estimate fits\n"
    "  --shard I/N          the I-th of N parts, by whole kernels; `normbench merge` puts them together and grades all\n"
    "  --list               print the cases and what does not apply; run nothing\n\n"
    "How\n"
    "  --search SECONDS     time for all searches together (default 60)\n"
    "  --no-search          check and grade only\n"
    "  --case-timeout S     end a case that makes no progress for so long (default 20)\n"
    "  --min-grade GRADE    exit with 1 when any grade in a declared range is lower\n\n"
    "Output\n"
    "  --out DIR            the folder (default results/TIME-stress): journal.jsonl, results.json, stress.json,\n"
    "                       reproducers/, plots/, index.html, precision-plots/, precision.html\n"
    "  --resume DIR         resume where it was cut off; takes no option that would change the plan\n"
    "  --format NAME        table (default), markdown or json (stress.json) on stdout\n"
    "  --no-plots           write no plots and no pages\n" NB_TUNING_HELP NB_COMMON_HELP "\n"
    "Example: normbench stress --kernel 'rmsnorm_*' --dtype bf16 --no-search\n"
    "Exit codes: 0 nothing failed, whatever the grades; 1 a case failed (inaccurate, crashed ...), a relation between\n"
    "calls that must hold (scaled, negated, permuted rows ...) did not, or a grade is below --min-grade; 2 usage or\n"
    "configuration, 5 --resume on another CPU, 77 nothing selected can run here, 128+n ended by signal n (what is done\n"
    "is kept; --resume continues).\n";

struct stress_options {
    struct nb_plan_request request;
    struct nb_output_options output;
    bool no_search;
    double search_s;
    enum nb_grade min_grade;
};
static const struct stress_options usual = {
    .request = NB_PLAN_REQUEST_INIT, .search_s = 60, .output.case_timeout_s = 20};

static int set_min_grade(void *to, const char *value) {
    const enum nb_grade grade = nb_grade_parse(value);
    *(enum nb_grade *)to = grade;
    return grade != NB_GRADE_NONE ? 0 : nb_error("--min-grade %s: one of A+, A, B, C, D", value);
}

static bool parse(struct stress_options *o, int argc, char **argv, int *exit_code) {
    struct nb_plan_request *q = &o->request;
    const struct nb_option options[] = {NB_OUTPUT_OPTIONS(&o->output),
                                        {"format", .text = &o->output.format, .among = nb_table_markdown_json},
                                        {"search", .number = &o->search_s, .least = 0.1, .most = 1e6},
                                        {"no-search", .flag = &o->no_search},
                                        {"min-grade", .take = set_min_grade, .to = &o->min_grade},
                                        NB_CASES_OPTIONS(q),
                                        NB_SHARD_OPTION(q),
                                        {"kernel", .text = &q->kernels, .given = &q->changed},
                                        {"dtype", .text = &q->dtypes, .given = &q->changed},
                                        {"width", .text = &q->widths, .given = &q->changed},
                                        NB_TUNING_OPTION,
                                        {.name = NULL}};
    if (!nb_read_options(help, options, 1, argc, argv, exit_code)) return false;
    if (optind < argc) q->config = argv[optind];
    q->options.by_kernel = q->options.n_shards > 0; /* grades and searches are a kernel's */
    return true;
}

static void release(struct stress_options *o) { nb_plan_request_release(&o->request); }

/* --resume: the plan is made from the command line that the journal holds; what this one says besides counts more. */
static bool take_resumed(struct stress_options *o, struct nb_strings *saved, int argc, char **argv, int *exit_code) {
    if (!nb_journaled_argv_read(saved, o->output.resume, "stress", &o->output, &o->request, exit_code)) return false;
    release(o);
    *o = usual;
    return parse(o, (int)saved->n, saved->items, exit_code) && parse(o, argc, argv, exit_code);
}

/* ---- after the checks ---------------------------------------------------------------------------------------------- */

static bool is_below(const struct nb_grades *grades, enum nb_grade least) {
    for (size_t i = 0; i < grades->n; i++)
        if (grades->lines[i].declared.grade != NB_GRADE_NONE && grades->lines[i].declared.grade < least) return true;
    return false;
}

/* A kernel that took down a search's worker has failed as one that takes down a check's. */
static bool has_failed_search(const struct nb_searched *searched) {
    const cJSON *study;
    cJSON_ArrayForEach(study, searched->list) {
        const char *status = nb_json_get_text(study, "status");
        if (status && nb_status_parse(status) < NB_N_STATUSES && nb_status_failed(nb_status_parse(status))) return true;
    }
    return false;
}

static bool has_broken_relation(const struct nb_results *results) {
    for (size_t i = 0; i < results->n; i++)
        if (nb_stress_broken(&results->records[i]) > 0) return true;
    return false;
}

struct judged {
    bool failed; /* or below --min-grade */
    int ended;   /* as nb_stress_search() */
};

static int judge(const struct stress_options *o, const struct nb_plan *plan, const char *dir, bool search,
                 struct judged *out) {
    struct nb_results results released_by(nb_results_release) = {0};
    struct nb_grades grades released_by(nb_grades_release) = {0};
    struct nb_searched searched = {0};
    if (nb_results_fold(&results, dir) != 0) return -1;
    nb_grades_make(&grades, &results, NULL);
    if (nb_searched_read(&searched, dir) != 0) return -1;
    const struct nb_stress_search q = {.plan = plan,
                                       .results = &results,
                                       .grades = &grades,
                                       .plugins = (const char **)o->request.plugins.items,
                                       .n_plugins = (int)o->request.plugins.n,
                                       .budget_s = o->search_s,
                                       .silence_s = o->output.case_timeout_s + o->search_s,
                                       .dir = dir};
    if (search) out->ended = nb_stress_search(&q, &searched);
    if (!search && !o->no_search) searched.complete = false;
    cJSON *stress released_by(nb_json_release) = nb_stress_judge(&results, &grades, &searched);
    out->failed = nb_results_failed(&results) > 0 || has_failed_search(&searched) || has_broken_relation(&results) ||
                  is_below(&grades, o->min_grade);
    cJSON_Delete(searched.list);
    const int printed = nb_stress_print(stress, &results, o->output.format, stdout);
    fflush(stdout);
    if (nb_results_write(&results, dir) != 0 || nb_stress_write(stress, dir) != 0) return -1;
    if (!o->output.no_plots && (nb_stress_report(dir, stress) != 0 || nb_html_write(&results, dir) != 0)) return -1;
    nb_note("judgement: %s/stress.json%s%s%s", dir, o->output.no_plots ? "" : "; page: ", o->output.no_plots ? "" : dir,
            o->output.no_plots ? "" : "/" NB_STRESS_PAGE);
    return out->ended < 0 ? -1 : printed;
}

static int measure(const struct stress_options *o, const struct nb_plan *plan, const char *config, int argc,
                   char **argv) {
    struct nb_measuring m = nb_measuring_of(&o->request, &o->output, argc, argv);
    m.plan = plan;
    m.config = config;
    m.no_counters = true;
    char *dir freed = nb_measuring_folder(&m);
    struct judged judged = {0};
    bool began;
    int ended = nb_measuring_run(&m, dir, &began);
    const bool is_whole = began && judge(o, plan, dir, ended == 0 && !o->no_search, &judged) == 0 && ended >= 0;
    if (ended == 0) ended = judged.ended;
    return ended > 0       ? nb_ended_by(ended, "stress", began ? dir : NULL)
           : judged.failed ? NB_EXIT_FAILED
           : is_whole      ? NB_EXIT_OK
                           : NB_EXIT_USAGE;
}

static int stress_main(int argc, char **argv) {
    struct stress_options o released_by(release) = usual;
    struct nb_strings saved released_by(nb_strings_release) = {0};
    struct nb_config config released_by(nb_config_release) = {0};
    struct nb_plan plan released_by(nb_plan_release) = {0};
    int exit_code;
    if (!parse(&o, argc, argv, &exit_code)) return exit_code;
    if (o.output.resume && !take_resumed(&o, &saved, argc, argv, &exit_code)) return exit_code;
    if (!o.output.format) o.output.format = "table";
    o.request.usual[0] = "stress";
    o.request.usual[1] = "bugs";
    o.request.plugins_alone = true;
    o.request.untimed = true;
    if (nb_plan_request_make(&o.request, &config, &plan) != 0) return NB_EXIT_USAGE;
    plan.leaves_none_out = true; /* what is found must not depend on how busy the machine is */
    if (!nb_plan_only_shown(&plan, &config, o.output.list, o.output.format, &exit_code))
        exit_code = measure(&o, &plan, config.name, argc, argv);
    return exit_code;
}

const struct nb_command nb_command_stress = {"stress", "check and grade kernels on hard rows", help, stress_main};
