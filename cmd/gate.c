// SPDX-License-Identifier: Apache-2.0
/* normbench gate: did this change make kernels slower? Two builds, compared in one process after another on this machine, now. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "cmd/shared/run_plan.h"
#include "reports/gate/gate_report.h"
#include "reports/text/output.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/gate/calibration.h"
#include "src/gate/gate.h"
#include "src/gate/gate_trials.h"
#include "src/plan/config.h"

static const char help[] =
    "usage: normbench gate --baseline A.so --candidate B.so [OPTIONS]\n"
    "       normbench gate --baseline A.so --candidate B.so --function NAME [OPTIONS]\n"
    "       normbench gate --self-test [--baseline A.so] [--function NAME] [OPTIONS]\n"
    "       normbench gate --calibrate [--baseline A.so] [OPTIONS]\n\n"
    "Say PASS, REGRESSION or INCONCLUSIVE for each kernel of two builds, timed against each other in\n"
    "the same processes, in pairs, on the same buffers. Kernels whose machine code is the same pass\n"
    "untimed; a candidate that computes something wrong, or less accurately than the baseline, fails\n"
    "whatever its speed.\n\n"
    "What is compared\n"
    "  --baseline FILE.so   the build before the change; repeatable: builds of the same source in other layouts\n"
    "  --candidate FILE.so  the build after it; repeatable\n"
    "  --config CONFIG      the cases: a preset (`normbench list configs`) or a file, with a slash or .json in its\n"
    "                       name; default gate. Its key \"gate\" may set margins and budgets of instructions\n"
    "  --kernel GLOB        only these kernels; repeatable\n"
    "  --filter GLOB        only cases whose key contains this text or matches this glob; repeatable\n"
    "  --axis NAME=V1,V2    replace an axis in every block; repeatable\n\n"
    "Functions that are no kernels\n"
    "  (void f(void *state) in any two shared objects, C or C++; their types: kernels/function.h)\n"
    "  --function NAME      time this function; repeatable. C++: ns::f, or the mangled name\n"
    "  --setup NAME         void *setup(void), which makes the state; default NAME_setup where the builds have it\n"
    "  --bytes NAME         const void *bytes(const void *state, size_t *n): the output, which must be the same\n"
    "                       in both builds; default NAME_bytes\n"
    "  --check NAME         int check(const void *state, const void *other): 0 if the state is right; the\n"
    "                       baseline's is asked, other is its state; default NAME_check\n"
    "  --teardown NAME      void teardown(void *state); default NAME_teardown\n\n"
    "How it is decided\n"
    "  (a config can set the same under \"gate\", and budgets of instructions too: configs/README.md)\n"
    "  --fail-margin P      slower by more than P % is a regression (default 0.5)\n"
    "  --pass-margin P      slower by less than P % passes (default 1.5)\n"
    "  --level P            % probability of any false REGRESSION in the whole run (default 1)\n"
    "  --screen-launches N  of each case (default 12); --calibrate says what this machine needs\n"
    "  --confirm-launches N in each of two confirmations of a case that screening does not clear (default 24)\n"
    "  --blocks N           pairs in a launch (default 100)\n"
    "  --budget SECONDS     what is not decided by then is INCONCLUSIVE\n"
    "  --time-identical     time identical machine code too\n"
    "  --case-timeout S     end a kernel that makes no progress for so long (default 20)\n"
    "  --inconclusive WHAT  neutral (exit 4), pass (exit 0) or fail (exit 1); SUSPECT, which is faster than it\n"
    "                       can be, never passes\n"
    "  --not-comparable WHAT  neutral (exit 5), pass (exit 0) or fail (exit 1)\n\n"
    "How good it is here\n"
    "  --self-test          time a copy of the baseline (or of the built-in kernels) against itself, and the\n"
    "                       same code slowed by known amounts: count false alarms and detected slowdowns\n"
    "  --trials N           trials with the copy alone, for each case and load (default 20)\n"
    "  --powered N          trials with slowdowns too (default 2)\n"
    "  --effects LIST       the slowdowns, in %; default 1,2,3,5,10\n"
    "  --load LIST          idle, cpu (one busy process), memory (two bursty ones); default idle\n"
    "  --calibrate          launch kernels (the baseline's, or the built-in ones) beside copies of themselves, and\n"
    "                       say by op, dtype and shape how far the ratio of the same code scatters, what the gate\n"
    "                       can detect here, and how many launches and pairs that takes; no gate reads it\n"
    "  --cases N            cases launched of each op, dtype and shape (default 2)\n"
    "  --launches N         launches of each (default 20)\n"
    "  --effect P           the slowdown, in %, that a gate should detect 95 % of the time (default 1.5)\n\n"
    "Results\n"
    "  --format NAME        on stdout: table, json, markdown, junit, bencher, benchmark_action\n"
    "  --out DIR            gate.json, gate.md, gate.xml (JUnit), gate.bencher.json, gate.benchmark_action.json and\n"
    "                       samples.jsonl; with --self-test trials.json and samples.jsonl, with --calibrate\n"
    "                       calibration.json and samples.jsonl. Both print as table or json alone\n"
    "  --list               print the cases; time nothing\n" NB_TUNING_HELP NB_COMMON_HELP "\n"
    "Why a build cannot be compared, and what to add (cmd/guide/gate.md)\n"
    "  its SYMBOL is bound to that of OTHER: both builds would run one piece of code. Compile with\n"
    "      -fvisibility=hidden, g++ with -fno-gnu-unique besides, link with -Wl,-Bsymbolic\n"
    "  BUILD needs LIBRARY, and BUILD needs LIBRARY: each has a library of its own, but both would run the first one's.\n"
    "      Give the two different names (-Wl,-soname), or link each into its build\n"
    "  its RUNPATH has $ORIGIN: copies are compared, which lie in another folder; link with an absolute -Wl,-rpath\n"
    "  machine code cannot be compared (every case is timed, unless the files are equal byte for byte): compile with\n"
    "      -ffunction-sections -fdata-sections -fno-jump-tables, link with -Wl,--emit-relocs and\n"
    "      -Wl,--defsym=nb_code_in_sections=1; no -flto, -s or strip\n"
    "  another ABI (exit 5): build both sides with the kernel.h of this program\n"
    "  no such kernel or function (exit 5): it is new, gone or renamed in one of the builds\n\n"
    "Example: normbench gate --baseline old.so --candidate new.so --budget 60\n"
    "Exit codes: 0 passed, or what --self-test and --calibrate wanted was measured, 1 wrong or less accurate, or\n"
    "what an option makes a failure, 2 usage, 3 regression, 4 inconclusive or suspect, 5 not comparable,\n"
    "77 nothing selected can run here, 128+n ended by signal n. Where several hold: the first of 1, 3, 5, 4;\n"
    "a failure by an option comes behind 3.\n";

struct gate_options {
    struct nb_strings baselines, candidates, kernels, filters, axes, functions;
    const char *config, *format, *out, *inconclusive, *not_comparable;
    const char *roles[NB_N_FUNCTION_ROLES]; /* --setup and so on, for all of them */
    bool list, self_test, calibrate;
    int cases, launches;
    double effect;                                                  /* percent */
    double fail_margin_percent, pass_margin_percent, level_percent; /* NaN: as the config says */
    struct nb_gate_plan plan;
    struct nb_trial_plan trials;
};

static const struct nb_trial_plan default_trials = {
    .trials = 20, .powered = 2, .effects = {1, 2, 3, 5, 10}, .n_effects = 5, .loads = {true}};

static int set_effects(void *to, const char *value) {
    struct nb_trial_plan *plan = to;
    struct nb_strings words released_by(nb_strings_release) = {0};
    bool good = true;
    nb_strings_split(&words, value, ',');
    plan->n_effects = 0;
    for (size_t i = 0; i < words.n && good; i++) {
        char *end;
        const long percent = strtol(words.items[i], &end, 10);
        good = *words.items[i] && *end == '\0' && percent >= 1 && percent <= 100 && plan->n_effects < NB_MAX_EFFECTS;
        if (good) plan->effects[plan->n_effects++] = (int)percent;
    }
    if (good) return 0;
    return nb_error("--effects %s: up to %d whole numbers from 1 to 100, with commas", value, NB_MAX_EFFECTS);
}

static int set_loads(void *to, const char *value) {
    struct nb_trial_plan *plan = to;
    struct nb_strings words released_by(nb_strings_release) = {0};
    bool good = true;
    nb_strings_split(&words, value, ',');
    memset(plan->loads, 0, sizeof plan->loads);
    for (size_t i = 0; i < words.n && good; i++) {
        const int load = nb_name_find(nb_load_names, words.items[i]);
        good = load >= 0;
        if (good) plan->loads[load] = true;
    }
    return good ? 0 : nb_error("--load %s: idle, cpu and memory, with commas", value);
}

/* A build beside copies of itself. */
static bool is_with_itself(const struct gate_options *o) { return o->self_test || o->calibrate; }

static int check_options(const struct gate_options *o) {
    const char *const mode = o->calibrate ? "--calibrate" : "--self-test";
    if (o->functions.n > 0 && (o->config || o->kernels.n > 0 || o->filters.n > 0 || o->axes.n > 0))
        return nb_error("--function compares what it names: no --config, --kernel, --filter or --axis");
    for (int role = 0; role < NB_N_FUNCTION_ROLES; role++)
        if (o->functions.n == 0 && o->roles[role])
            return nb_error("--setup, --bytes, --check and --teardown go with --function NAME");
    if (o->functions.n > 0 && o->baselines.n == 0) return nb_error("--function NAME is looked for in --baseline A.so");
    if (o->self_test && o->calibrate) return nb_error("--self-test or --calibrate, not both");
    if (o->calibrate && o->functions.n > 0)
        return nb_error("--calibrate is of kernels, by op, dtype and shape: no --function");
    if (is_with_itself(o) && o->candidates.n > 0)
        return nb_error("%s compares a build with itself: no --candidate", mode);
    if (is_with_itself(o) && strcmp(o->format, "table") != 0 && strcmp(o->format, "json") != 0)
        return nb_error("%s: --format is one of table, json", mode);
    if (!is_with_itself(o) && (o->baselines.n == 0 || o->candidates.n == 0))
        return nb_error("gate needs --baseline A.so and --candidate B.so; see `normbench gate --help`");
    return 0;
}

/* The command line counts more than the config (0: not given there). */
static void settle(double *share, double percent, double configured) {
    if (!isnan(percent))
        *share = percent / 100;
    else if (configured > 0)
        *share = configured;
}

static int settle_margins(struct nb_gate *g, const struct gate_options *o) {
    struct nb_gate_rule *rule = &g->plan.rule;
    settle(&rule->fail_margin, o->fail_margin_percent, g->settings.fail_margin);
    settle(&rule->pass_margin, o->pass_margin_percent, g->settings.pass_margin);
    settle(&rule->run_level, o->level_percent, g->settings.level);
    if (o->calibrate && !(o->effect / 100 > rule->fail_margin))
        return nb_error("--effect %g: the gate lets pass what is slower by %g%% or less", o->effect,
                        100 * rule->fail_margin);
    if (rule->pass_margin > rule->fail_margin) return 0;
    return nb_error(
        "the margin below which a case passes (--pass-margin, %g%%) must be larger than the one above which it "
        "fails (--fail-margin, %g%%)",
        100 * rule->pass_margin, 100 * rule->fail_margin);
}

static bool parse(struct gate_options *o, int argc, char **argv, int *exit_code) {
    enum { MOST = 100000 };
    static const char *const outcomes[] = {"neutral", "pass", "fail", NULL};
    struct nb_gate_plan *plan = &o->plan;
    const struct nb_option options[] = {
        {"baseline", .texts = &o->baselines},
        {"config", .text = &o->config},
        {"kernel", .texts = &o->kernels},
        {"filter", .texts = &o->filters},
        {"axis", .texts = &o->axes},
        {"list", .flag = &o->list},
        {"candidate", .texts = &o->candidates},
        {"function", .texts = &o->functions},
        {"setup", .text = &o->roles[NB_FUNCTION_SETUP]},
        {"bytes", .text = &o->roles[NB_FUNCTION_BYTES]},
        {"check", .text = &o->roles[NB_FUNCTION_CHECK]},
        {"teardown", .text = &o->roles[NB_FUNCTION_TEARDOWN]},
        {"trials", .count = &o->trials.trials, .least = 0, .most = MOST},
        {"powered", .count = &o->trials.powered, .least = 0, .most = MOST},
        {"effects", .take = set_effects, .to = &o->trials},
        {"load", .take = set_loads, .among = nb_load_names, .to = &o->trials},
        {"fail-margin", .number = &o->fail_margin_percent, .least = 0.1, .most = 100},
        {"pass-margin", .number = &o->pass_margin_percent, .least = 0.1, .most = 100},
        {"level", .number = &o->level_percent, .least = 0.001, .most = 20},
        /* Bounds from ranks: 2^-n must be below the level of the look. */
        {"screen-launches", .count = &plan->screen_launches, .least = 7, .most = MOST},
        {"confirm-launches", .count = &plan->confirm_launches, .least = 12, .most = MOST},
        {"blocks", .count = &plan->blocks, .least = 8, .most = MOST},
        {"budget", .number = &plan->budget_s, .least = 0.001, .most = 1e7},
        {"time-identical", .flag = &plan->ignore_identity},
        NB_CASE_TIMEOUT_OPTION(&plan->case_timeout_s),
        {"inconclusive", .text = &o->inconclusive, .among = outcomes},
        {"not-comparable", .text = &o->not_comparable, .among = outcomes},
        {"format", .text = &o->format, .among = nb_gate_formats},
        {"out", .text = &o->out},
        {"self-test", .flag = &o->self_test},
        {"calibrate", .flag = &o->calibrate},
        {"cases", .count = &o->cases, .least = 1, .most = MOST},
        {"launches", .count = &o->launches, .least = 6, .most = MOST}, /* fewer show no spread */
        {"effect", .number = &o->effect, .least = 0.1, .most = 100},
        NB_TUNING_OPTION,
        {.name = NULL}};
    if (!nb_read_options(help, options, 0, argc, argv, exit_code)) return false;
    plan->inconclusive_fails = strcmp(o->inconclusive, "fail") == 0;
    plan->not_comparable_fails = strcmp(o->not_comparable, "fail") == 0;
    return check_options(o) == 0;
}

/* ---- the exit code -------------------------------------------------------------------------------------------------- */

/* By --inconclusive or --not-comparable. */
static int taken_as(const char *outcome, int neutral) {
    return strcmp(outcome, "pass") == 0 ? NB_EXIT_OK : strcmp(outcome, "fail") == 0 ? NB_EXIT_FAILED : neutral;
}

/* As the worst verdict; what an option makes a failure comes behind all that is one by itself. */
static int exit_code_of(const struct nb_gate *g, const struct gate_options *o) {
    bool any[NB_N_VERDICTS] = {false};
    for (size_t i = 0; i < g->n_cases; i++) any[g->cases[i].verdict] = true;
    const bool suspect = any[NB_VERDICT_SUSPECT], open = suspect || any[NB_VERDICT_INCONCLUSIVE];
    if (any[NB_VERDICT_WRONG] || any[NB_VERDICT_LESS_ACCURATE]) return NB_EXIT_FAILED;
    if (any[NB_VERDICT_REGRESSION]) return NB_EXIT_REGRESSION;
    const int of_apart =
        any[NB_VERDICT_NOT_COMPARABLE] ? taken_as(o->not_comparable, NB_EXIT_NOT_COMPARABLE) : NB_EXIT_OK;
    int of_open = open ? taken_as(o->inconclusive, NB_EXIT_INCONCLUSIVE) : NB_EXIT_OK;
    if (suspect && of_open == NB_EXIT_OK) of_open = NB_EXIT_INCONCLUSIVE;
    if (of_apart == NB_EXIT_FAILED) nb_warn("NOT COMPARABLE counts as a failure: --not-comparable fail");
    if (of_open == NB_EXIT_FAILED)
        nb_warn("%s counts as a failure: --inconclusive fail", suspect ? "SUSPECT" : "INCONCLUSIVE");
    if (of_apart == NB_EXIT_FAILED || of_open == NB_EXIT_FAILED) return NB_EXIT_FAILED;
    return of_apart != NB_EXIT_OK ? of_apart : of_open;
}

/* ---- what is done with the cases; each returns what it came to (0, -1 after nb_error, or a signal's number) ------------- */

static int compare_builds(struct nb_gate *g, const struct gate_options *o, int *exit_code) {
    if (o->out && nb_gate_record(g, o->out) != 0) return -1;
    const int result = nb_gate_run(g);
    bool is_whole = result >= 0 && nb_gate_print(g, o->format, stdout) == 0;
    fflush(stdout);
    is_whole &= nb_gate_record_end(g) == 0;
    if (result < 0) return -1;
    if (o->out && nb_gate_write(g, o->out) != 0) is_whole = false;
    *exit_code = exit_code_of(g, o);
    if (!is_whole) *exit_code = nb_exit_unwritten(*exit_code);
    return result;
}

/* Trials say how good the gate is and are no gate themselves, so that the exit code says only whether they could be made. */
static int self_test(struct nb_gate *g, const struct gate_options *o, int *exit_code) {
    struct nb_trials trials = {0};
    struct nb_trials_record record;
    struct nb_trial_plan plan = o->trials;
    if (o->out && nb_trials_record_open(&record, g, &plan, &trials, o->out) != 0) return -1;
    int result = nb_gate_trials_run(g, &plan, &trials);
    if (result >= 0 && nb_gate_print_trials(g, &plan, &trials, o->format, stdout) != 0) result = -1;
    if (o->out && nb_trials_record_close(&record, &plan, o->out) != 0) result = -1;
    free(trials.results);
    *exit_code = NB_EXIT_OK;
    return result;
}

static int calibrate(struct nb_gate *g, const struct gate_options *o, int *exit_code) {
    struct nb_calibration_run run = {.g = g, .launches = o->launches, .cases_per_group = o->cases};
    if (o->out && nb_gate_record(g, o->out) != 0) return -1;
    int result = nb_calibration_run(&run);
    if (nb_gate_record_end(g) != 0) result = -1;
    if (result >= 0 &&
        nb_calibration_report(&run, o->config ? o->config : "gate", o->effect / 100, o->format, stdout, o->out) != 0)
        result = -1;
    *exit_code = NB_EXIT_FAILED;
    for (size_t i = 0; i < run.n_groups; i++)
        if (run.groups[i].noise.n_residuals > 0) *exit_code = NB_EXIT_OK;
    nb_calibration_run_release(&run);
    return result;
}

/* ---- the command -------------------------------------------------------------------------------------------------------- */

static int make_kernels(const struct gate_options *o, struct nb_gate *g, size_t *n_elsewhere) {
    const struct nb_filters filters = {(const char *const *)o->filters.items, o->filters.n};
    struct nb_config config released_by(nb_config_release) = {0};
    struct nb_skips skips released_by(nb_skips_release) = {0};
    int result = nb_config_read(&config, o->config ? o->config : "gate");
    for (size_t i = 0; i < o->axes.n && result == 0; i++) result = nb_config_axis(&config, o->axes.items[i]);
    if (result == 0)
        result = nb_gate_cases_make(g, &config, (const char *const *)o->kernels.items, o->kernels.n, &filters, &skips,
                                    n_elsewhere);
    g->settings = config.gate;
    config.gate = (struct nb_gate_settings){0};
    return result;
}

/* Opens the builds and makes the cases. -1 after nb_error, or NB_OTHER_ABI. */
static int make_cases(struct gate_options *o, struct nb_gate *g, size_t *n_elsewhere) {
    const struct nb_strings *b = &o->baselines, *c = is_with_itself(o) ? b : &o->candidates;
    const bool of_kernels = o->functions.n == 0, takes_builtin = of_kernels && is_with_itself(o) && b->n == 0;
    if (takes_builtin && nb_registry_load_builtin() != 0) return -1;
    if (takes_builtin) nb_strings_add(&o->baselines, nb_registry_file(0));
    int result = nb_gate_builds_init(&g->builds, (const char *const *)b->items, b->n, (const char *const *)c->items,
                                     c->n, of_kernels);
    if (result == 0 && of_kernels && !takes_builtin) result = nb_registry_load_builtin(); /* copies are among theirs */
    if (result != 0) return result;
    return of_kernels ? make_kernels(o, g, n_elsewhere)
                      : nb_gate_functions_make(g, (const char *const *)o->functions.items, o->functions.n, o->roles);
}

/* --list, or nothing to do: true when the command is at its end, with its exit code. */
static bool settles(const struct gate_options *o, const struct nb_gate *g, size_t n_elsewhere, int *exit_code) {
    if (g->n_cases == 0) {
        nb_error("no case is left; `normbench list kernels` and --list show what there is");
        *exit_code = n_elsewhere > 0 ? NB_EXIT_NOTHING_RUNS : NB_EXIT_USAGE;
        return true;
    }
    if (!o->list) return false;
    for (size_t i = 0; i < g->n_cases; i++) nb_print_line(stdout, "%s", g->cases[i].key);
    *exit_code = NB_EXIT_OK;
    return true;
}

static void release(struct gate_options *o) {
    struct nb_strings *const lists[] = {&o->baselines, &o->candidates, &o->kernels,
                                        &o->filters,   &o->axes,       &o->functions};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) nb_strings_release(lists[i]);
}

static int gate_main(int argc, char **argv) {
    struct gate_options o released_by(release) = {.format = "table",
                                                  .inconclusive = "neutral",
                                                  .not_comparable = "neutral",
                                                  .trials = default_trials,
                                                  .cases = 2,
                                                  .launches = 20,
                                                  .effect = 1.5,
                                                  .fail_margin_percent = NAN,
                                                  .pass_margin_percent = NAN,
                                                  .level_percent = NAN};
    struct nb_gate g released_by(nb_gate_release);
    size_t n_elsewhere = 0;
    int exit_code;
    nb_gate_init(&g);
    o.plan = g.plan;
    if (!parse(&o, argc, argv, &exit_code)) return exit_code;
    g.plan = o.plan;
    if (o.out && !is_with_itself(&o) && !o.list) nb_gate_clear(o.out);
    const int made = make_cases(&o, &g, &n_elsewhere);
    if (made == NB_OTHER_ABI) exit_code = taken_as(o.not_comparable, NB_EXIT_NOT_COMPARABLE);
    if (made != 0 || settle_margins(&g, &o) != 0 || settles(&o, &g, n_elsewhere, &exit_code)) return exit_code;
    const int did = (o.self_test ? self_test : o.calibrate ? calibrate : compare_builds)(&g, &o, &exit_code);
    return did == 0 ? exit_code : did < 0 ? NB_EXIT_USAGE : nb_ended_by(did, "gate", NULL);
}

const struct nb_command nb_command_gate = {"gate", "say whether a build is slower than another", help, gate_main};
