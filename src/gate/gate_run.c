// SPDX-License-Identifier: Apache-2.0
/* Budgets, then what is known of a case before it is timed (is there anything to compare, is it the same machine code, is what both builds
 * compute right, is the candidate as accurate as the baseline?), then stages over cases. */
#include "src/gate/gate_run.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/accuracy.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/stats.h"
#include "src/core/timer.h"
#include "src/gate/code_identity.h"
#include "src/gate/gate_function.h"
#include "src/gate/gate_launch.h"
#include "src/measure/launcher.h"
#include "src/plan/cells.h"

static void decide(struct nb_gate_case *c, enum nb_verdict verdict, const char *reason) {
    c->verdict = verdict;
    snprintf(c->reason, sizeof c->reason, "%s", reason);
}

/* ---- budgets of instructions ----------------------------------------------------------------------------------------- */

static bool is_bound_by(const struct nb_instruction_budget *budget, const struct nb_gate_case *c) {
    const char *const text = budget->filter;
    const struct nb_filters filter = {&text, 1};
    return nb_filters_match(&filter, c->key);
}

/* Does the config bound what the case may take? only_absolute: by a number, which binds code that did not change too. */
static bool gate_has_budget(const struct nb_gate *g, const struct nb_gate_case *c, bool only_absolute) {
    for (size_t i = 0; i < g->settings.n_budgets; i++)
        if (is_bound_by(&g->settings.budgets[i], c) && !(only_absolute && g->settings.budgets[i].relative)) return true;
    return false;
}

/* The build whose case a worker's line is about; -1: it is no such line. */
static int build_of(const struct nb_gate_case *c, const cJSON *line) {
    const char *type = nb_json_get_text(line, "type"), *key = nb_json_get_text(line, "key");
    for (int b = 0; b < NB_N_BUILDS && type && key && strcmp(type, "case") == 0; b++)
        if (strcmp(key, c->arm_keys[b]) == 0) return b;
    return -1;
}

static void take_count(cJSON *line, void *arg) {
    struct nb_gate_case *c = arg;
    const int b = build_of(c, line);
    const cJSON *counters = cJSON_GetObjectItemCaseSensitive(b >= 0 ? line : NULL, "counters"), *counter;
    cJSON_ArrayForEach(counter, counters) {
        const char *name = nb_json_get_text(counter, "name"), *reason = nb_json_get_text(counter, "reason");
        if (!name || strcmp(name, "instructions_exact") != 0) continue;
        c->instructions[b] = nb_json_get_number(counter, "value");
        if (reason) snprintf(c->uncounted, sizeof c->uncounted, "%s: %.100s", nb_build_names[b], reason);
    }
    cJSON_Delete(line);
}

/* Fills the case's instructions, or uncounted with the reason. One worker counts both builds; the control need not be counted. 0, -1 after
 * nb_error, or a signal's number. */
static int count_instructions(const struct nb_gate *g, struct nb_gate_case *c) {
    const char *keys[] = {c->arm_keys[NB_BUILD_BASELINE], c->arm_keys[NB_BUILD_CANDIDATE]};
    int samples[] = {0, 0}, copies[] = {-1, -1};
    bool steps[] = {true, true};
    struct nb_outcome o;
    const struct nb_job job = {.kind = "counters",
                               .launch = -1,
                               .plugins = (const char **)(uintptr_t)g->builds.files[0],
                               .n_plugins = NB_N_BUILDS,
                               .keys = keys,
                               .samples = samples,
                               .copy_of = copies,
                               .steps = steps,
                               .n_cases = 2,
                               .check_only = true,
                               .digests_at = -1};
    snprintf(c->uncounted, sizeof c->uncounted, "the count did not come to its end");
    nb_process_run(NULL, &job, -1, g->plan.case_timeout_s, take_count, c, &o);
    if (nb_launcher_ends(&o) != 0) return nb_launcher_ends(&o);
    if (isfinite(c->instructions[NB_BUILD_BASELINE]) && isfinite(c->instructions[NB_BUILD_CANDIDATE]))
        c->uncounted[0] = '\0';
    return 0;
}

/* REGRESSION with over_budget where a count is above a budget. */
static void gate_keep_budget(const struct nb_gate *g, struct nb_gate_case *c) {
    const double counted = c->instructions[NB_BUILD_CANDIDATE], before = c->instructions[NB_BUILD_BASELINE];
    for (size_t i = 0; i < g->settings.n_budgets; i++) {
        const struct nb_instruction_budget *b = &g->settings.budgets[i];
        const double most = b->relative ? (1 + b->most) * before : b->most;
        if (!is_bound_by(b, c) || !(counted > most)) continue;
        c->verdict = NB_VERDICT_REGRESSION;
        c->over_budget = true;
        if (b->relative)
            snprintf(c->reason, sizeof c->reason,
                     "instructions: %.0f against the baseline's %.0f (%+.2f %%), \"%.60s\" allows +%g %%", counted,
                     before, 100 * (counted / before - 1), b->filter, 100 * b->most);
        else
            snprintf(c->reason, sizeof c->reason, "instructions: %.0f, \"%.60s\" allows %.0f", counted, b->filter,
                     most);
        return;
    }
}

/* At the end: what passed while its budget could not be looked at is INCONCLUSIVE. */
static void gate_settle_budget(const struct nb_gate *g, struct nb_gate_case *c) {
    const bool passed =
        c->verdict == NB_VERDICT_PASS || c->verdict == NB_VERDICT_IMPROVED || c->verdict == NB_VERDICT_IDENTICAL;
    if (!passed || !c->uncounted[0] || !gate_has_budget(g, c, c->verdict == NB_VERDICT_IDENTICAL)) return;
    c->verdict = NB_VERDICT_INCONCLUSIVE;
    snprintf(c->reason, sizeof c->reason, "its budget of instructions cannot be looked at: %.150s", c->uncounted);
}

/* ---- what there is to compare ----------------------------------------------------------------------------------------- */

static bool has_build(const struct nb_gate_case *c, int build) {
    return c->function ? c->addresses[build][NB_FUNCTION_TIMED] != 0 : c->entries[build] != NULL;
}

static bool is_comparable(struct nb_gate_case *c) {
    const struct nb_entry *baseline = c->entries[NB_BUILD_BASELINE], *candidate = c->entries[NB_BUILD_CANDIDATE];
    const char *reason = NULL;
    if (!has_build(c, NB_BUILD_BASELINE))
        reason = c->function ? "the baseline has no such function" : "the baseline has no such kernel";
    else if (!has_build(c, NB_BUILD_CANDIDATE))
        reason =
            c->function ? "the candidate has no such function any more" : "the candidate has no such kernel any more";
    else if (c->function)
        return true; /* files that stay apart (check_binding()) */
    else if (nb_gate_same_code(baseline, candidate))
        reason = nb_gate_same_code(baseline, candidate);
    if (reason) decide(c, NB_VERDICT_NOT_COMPARABLE, reason);
    return !reason;
}

struct codes {
    bool same_bytes;                      /* nothing can differ */
    struct nb_code *baseline, *candidate; /* null: not to be compared as machine code */
    size_t n_unknown;                     /* kernels whose code cannot be followed to its end, */
    char why[200];                        /* the first for this reason */
};

/* Of a function with what makes its state: what only compares results may differ. */
static int digest_function(const struct nb_code *code, const struct nb_gate_case *c, int build, uint64_t digest[2],
                           char *reason, size_t n) {
    const uint64_t roots[] = {c->addresses[build][NB_FUNCTION_TIMED], c->addresses[build][NB_FUNCTION_SETUP]};
    return nb_code_digest_of(code, roots, roots[1] ? 2 : 1, digest, reason, n);
}

static bool is_known(struct codes *codes, const struct nb_code *code, const struct nb_gate_case *c, int build,
                     enum nb_code_part part, uint64_t digest[2]) {
    char reason[200];
    const int result = c->function ? digest_function(code, c, build, digest, reason, sizeof reason)
                                   : nb_code_digest(code, c->entries[build], part, digest, reason, sizeof reason);
    if (result == 0) return true;
    if (codes->n_unknown++ == 0) snprintf(codes->why, sizeof codes->why, "%.60s: %.130s", c->arm_keys[build], reason);
    return false;
}

static bool is_identical(struct codes *codes, const struct nb_gate_case *c, enum nb_code_part part) {
    uint64_t a[2], b[2];
    if (codes->same_bytes) return true;
    return codes->baseline && codes->candidate && is_known(codes, codes->baseline, c, NB_BUILD_BASELINE, part, a) &&
           is_known(codes, codes->candidate, c, NB_BUILD_CANDIDATE, part, b) && a[0] == b[0] && a[1] == b[1];
}

static void open_codes(struct codes *codes, const struct nb_gate *g) {
    char reason[200];
    if ((codes->same_bytes = g->builds.same_bytes)) return;
    codes->baseline = nb_code_open(g->builds.files[0][NB_BUILD_BASELINE], reason, sizeof reason);
    codes->candidate = nb_code_open(g->builds.files[0][NB_BUILD_CANDIDATE], reason, sizeof reason);
    if (codes->baseline && codes->candidate) return;
    nb_note("machine code of the %s cannot be compared (%s): every case is timed",
            codes->baseline ? "candidate" : "baseline", reason);
}

/* ---- accuracy --------------------------------------------------------------------------------------------------------- */

static int64_t strange(const struct nb_accuracy *a) {
    return a->nan_unexpected + a->inf_unexpected + a->zero_unexpected + a->nan_missing + a->inf_missing;
}

static bool is_beyond(double candidate, double baseline) {
    return candidate > NB_GATE_ULP_FACTOR * baseline + NB_GATE_ULP_MORE;
}

/* Elements of dx may cancel to anything: which is off by most ulp, and by how many, is chance, and another order of a sum draws again. So
 * is the bias of those near 0. */
static double error_of(const struct nb_accuracy *a) { return a->has_parameters ? a->p99_ulp : a->max_ulp; }
static double bias_of(const struct nb_accuracy *a) { return a->has_parameters ? a->bias_large_u : a->bias_u; }

/* Null, or the gradient of a parameter that is worse in norm. */
static const char *worse_parameter(const struct nb_accuracy *baseline, const struct nb_accuracy *candidate) {
    const struct nb_parameter_error *before[] = {&baseline->dgamma, &baseline->dbeta, &baseline->dalpha};
    const struct nb_parameter_error *after[] = {&candidate->dgamma, &candidate->dbeta, &candidate->dalpha};
    static const char *const names[] = {"dgamma", "dbeta", "dalpha"};
    for (int i = 0; i < 3; i++)
        if (before[i]->n > 0 && after[i]->n > 0 && is_beyond(after[i]->norm_u, NB_GATE_NORM_FACTOR * before[i]->norm_u))
            return names[i];
    return NULL;
}

/* Null, or in what the candidate is less accurate; the text is good until the next call. */
static const char *gate_less_accurate(const struct nb_accuracy *baseline, const struct nb_accuracy *candidate) {
    static char text[200];
    const char *parameter = worse_parameter(baseline, candidate);
    if (strange(candidate) > strange(baseline))
        snprintf(text, sizeof text, "%lld NaN, Inf or lost zeros where the baseline has %lld",
                 (long long)strange(candidate), (long long)strange(baseline));
    else if (is_beyond(error_of(candidate), error_of(baseline)))
        snprintf(text, sizeof text, "%s error %.4g ulp, the baseline's %.4g",
                 candidate->has_parameters ? "99th percentile of the" : "largest", error_of(candidate),
                 error_of(baseline));
    else if (fabs(bias_of(candidate)) > fabs(bias_of(baseline)) + NB_GATE_BIAS_MORE_U)
        snprintf(text, sizeof text, "bias %+.3g u, the baseline's %+.3g", bias_of(candidate), bias_of(baseline));
    else if (parameter)
        snprintf(text, sizeof text, "%s is further off in norm than the baseline's", parameter);
    else
        return NULL;
    return text;
}

/* ---- the worker ------------------------------------------------------------------------------------------------------- */

struct checks {
    struct nb_gate_case *c;
    enum nb_status status[NB_N_BUILDS];
    bool answered[NB_N_BUILDS];
    char reason[NB_N_BUILDS][160];
};

static void take_check(cJSON *line, void *arg) {
    struct checks *checks = arg;
    const int b = build_of(checks->c, line);
    if (b >= 0) {
        const char *status = nb_json_get_text(line, "status"), *reason = nb_json_get_text(line, "reason");
        const cJSON *accuracy = cJSON_GetObjectItemCaseSensitive(line, "accuracy");
        checks->answered[b] = true;
        checks->status[b] = status ? nb_status_parse(status) : NB_CRASHED;
        snprintf(checks->reason[b], sizeof checks->reason[b], "%s", reason ? reason : "");
        if (accuracy && nb_accuracy_from_json(&checks->c->accuracy[b], accuracy) == 0)
            checks->c->has_accuracy[b] = true;
    }
    cJSON_Delete(line);
}

/* One worker for each build, on the same inputs. */
static int run_checks(const struct nb_gate *g, struct checks *checks) {
    static const int builds[] = {NB_BUILD_BASELINE, NB_BUILD_CANDIDATE};
    for (int i = 0; i < 2; i++) {
        const int b = builds[i];
        const char *key = checks->c->arm_keys[b];
        int sample = 0;
        struct nb_outcome o;
        struct nb_job job = {
            .kind = "check",
            .launch = -1,
            .plugins =
                (const char **)(uintptr_t)&g->builds.files[0][b], /* what the others do is no matter of this one's */
            .n_plugins = 1,
            .keys = &key,
            .samples = &sample,
            .n_cases = 1,
            .check_only = true,
            .digests_at = -1};
        nb_process_run(NULL, &job, -1, g->plan.case_timeout_s, take_check, checks, &o);
        if (nb_launcher_ends(&o) != 0) return nb_launcher_ends(&o);
        if (checks->answered[b]) continue;
        checks->status[b] = nb_outcome_blame(&o, checks->reason[b], sizeof checks->reason[b]);
    }
    return 0;
}

static void judge_checks(const struct checks *checks) {
    struct nb_gate_case *c = checks->c;
    const enum nb_status baseline = checks->status[NB_BUILD_BASELINE], candidate = checks->status[NB_BUILD_CANDIDATE];
    char reason[240];
    if (nb_status_failed(candidate) || nb_status_failed(baseline)) {
        const int b = nb_status_failed(candidate) ? NB_BUILD_CANDIDATE : NB_BUILD_BASELINE;
        snprintf(reason, sizeof reason, "%s%s%s%s", nb_status_name(checks->status[b]), checks->reason[b][0] ? ": " : "",
                 checks->reason[b],
                 b == NB_BUILD_BASELINE       ? " (the baseline; the candidate is right)"
                 : nb_status_failed(baseline) ? " (the baseline fails too)"
                                              : "");
        decide(c, b == NB_BUILD_CANDIDATE ? NB_VERDICT_WRONG : NB_VERDICT_NOT_COMPARABLE, reason);
    } else if (!nb_status_timed(candidate) || !nb_status_timed(baseline)) {
        decide(c, NB_VERDICT_NOT_COMPARABLE,
               checks->reason[nb_status_timed(candidate) ? NB_BUILD_BASELINE : NB_BUILD_CANDIDATE]);
    } else if (c->has_accuracy[NB_BUILD_BASELINE] && c->has_accuracy[NB_BUILD_CANDIDATE]) {
        const char *worse = gate_less_accurate(&c->accuracy[NB_BUILD_BASELINE], &c->accuracy[NB_BUILD_CANDIDATE]);
        if (worse) decide(c, NB_VERDICT_LESS_ACCURATE, worse);
    }
}

static int check_case(struct nb_gate *g, struct nb_gate_case *c, struct codes *codes) {
    struct checks checks = {.c = c};
    const double start = nb_now_s();
    if (c->verdict != NB_VERDICT_NONE || !is_comparable(c)) return 0;
    const bool identical = is_identical(codes, c, NB_CODE_TIMED);
    int result = 0;
    /* The same code that claims something else is checked against that, and a function with the bytes and the check of its build. */
    if (c->function && !codes->same_bytes) {
        result = nb_gate_function_check(g, c);
    } else if (!c->function && (!identical || !is_identical(codes, c, NB_CODE_ALL))) {
        result = run_checks(g, &checks);
        if (result == 0) judge_checks(&checks);
    }
    const bool is_open = result == 0 && c->verdict == NB_VERDICT_NONE;
    if (is_open && identical) decide(c, NB_VERDICT_IDENTICAL, "");
    if (is_open && !c->function && (!identical || gate_has_budget(g, c, true))) {
        result = count_instructions(g, c);
        gate_keep_budget(g, c);
    }
    c->seconds += nb_now_s() - start;
    return result;
}

/* Decides the cases that need no timing. 0, -1 after nb_error, or a signal's number. */
static int check_all(struct nb_gate *g) {
    struct codes codes = {0};
    int result = 0;
    if (!g->plan.ignore_identity) open_codes(&codes, g);
    for (size_t i = 0; i < g->n_cases && result == 0; i++) {
        nb_progress((double)i, (double)g->n_cases, nb_now_s() - g->started_s, "checking");
        result = check_case(g, &g->cases[i], &codes);
    }
    if (codes.n_unknown > 0)
        nb_note("%zu case%s timed without comparing machine code; %s", codes.n_unknown,
                codes.n_unknown == 1 ? " is" : "s are", codes.why);
    nb_code_close(codes.baseline);
    nb_code_close(codes.candidate);
    return result;
}

/* ---- launches ------------------------------------------------------------------------------------------------------- */

static const char *const stage_names[NB_N_GATE_STAGES] = {"screening", "confirming", "confirming"};

static bool is_open(const struct nb_gate_case *c) { return c->verdict == NB_VERDICT_NONE; }

static size_t count_open(const struct nb_gate *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_cases; i++) n += is_open(&g->cases[i]);
    return n;
}

static void keep_launch(struct nb_gate_launch **list, size_t *n, const struct nb_gate_launch *launch) {
    *list = nb_realloc(*list, *n + 1, sizeof **list);
    (*list)[(*n)++] = *launch;
}

/* What the candidate breaks is the candidate's fault; a baseline that does not run cannot be compared with. A build that is right when it
 * runs alone was spoilt by the one beside it: is_spoilt. */
static void take_failure(struct nb_gate_case *c, const struct nb_gate_answer *a, bool is_spoilt) {
    char reason[240];
    const bool candidate = a->failed == NB_BUILD_CANDIDATE || is_spoilt;
    snprintf(reason, sizeof reason, "%s while timed: %s%s%.120s%s",
             nb_build_names[a->failed < NB_N_BUILDS ? a->failed : 0], nb_status_name(a->status),
             a->reason[0] ? ", " : "", a->reason, is_spoilt ? " (beside the candidate; alone it is right)" : "");
    decide(c, candidate ? NB_VERDICT_WRONG : NB_VERDICT_NOT_COMPARABLE, reason);
}

/* Is one build of the request right to the end of a launch in which no other is in its process? Returns as nb_gate_launch_run() does. */
static int launch_alone(const struct nb_gate_request *together, int build, bool *is_right) {
    struct nb_gate_request q = *together;
    struct nb_gate_answer answer;
    q.files = &together->files[build];
    q.n_files = 1;
    q.keys[0] = together->keys[build];
    q.extra_percent[0] = together->extra_percent[build];
    q.n_arms = 1;
    const int result = nb_gate_launch_run(&q, &answer);
    if (result == 0) cJSON_Delete(answer.raw);
    *is_right = result == 0 && answer.status == NB_OK;
    return result;
}

/* Did every launch of the screening find the candidate so slow, by medians and by fastest samples, that a few short pairs show it? Its
 * samples are as much longer as it is slower. */
enum { FAR_BLOCKS = 10, FAR_SHORTER = 10 };
static bool is_far(const struct nb_gate_case *c) {
    const double far = log(NB_GATE_FAR);
    for (size_t i = 0; i < c->n_screen; i++)
        if (!(c->screen[i].ratio > far && c->screen[i].ratio_min > far)) return false;
    return c->n_screen > 0;
}

static int launch_case(struct nb_gate *g, struct nb_gate_case *c, enum nb_gate_stage stage, int number) {
    const double start = nb_now_s();
    struct nb_gate_request q = nb_gate_request_of(g, c, number);
    if (is_far(c)) {
        q.blocks = q.blocks < FAR_BLOCKS ? q.blocks : FAR_BLOCKS;
        q.sample_ms /= FAR_SHORTER;
    }
    struct nb_gate_answer answer = {0};
    bool is_spoilt = false;
    int result = nb_gate_launch(g, c, stage, &q, &answer);
    if (result == 0 && answer.status != NB_OK && answer.failed < NB_BUILD_CANDIDATE)
        result = launch_alone(&q, answer.failed, &is_spoilt);
    c->seconds += nb_now_s() - start;
    if (result != 0) return result;
    if (answer.status != NB_OK) {
        take_failure(c, &answer, is_spoilt);
        return 0;
    }
    c->chunked = answer.chunked;
    for (int b = 0; b < NB_N_BUILDS; b++) {
        const double n = (double)(c->n_screen + c->n_confirm), old = n > 0 ? c->call_ns[b] : 0;
        c->call_ns[b] = old + (answer.call_ns[b] - old) / (n + 1);
    }
    const struct nb_gate_launch *value = &answer.launch[NB_BUILD_CANDIDATE];
    if (stage == NB_GATE_SCREEN)
        keep_launch(&c->screen, &c->n_screen, value);
    else
        keep_launch(&c->confirm, &c->n_confirm, value);
    return 0;
}

/* Rounds over all open cases; *done counts launches for the progress line. */
static int run_launches(struct nb_gate *g, enum nb_gate_stage stage, int first, int n) {
    const double total = (double)n * (double)count_open(g);
    double done = 0;
    for (int l = 0; l < n; l++)
        for (size_t i = 0; i < g->n_cases; i++) {
            struct nb_gate_case *c = &g->cases[i];
            if (!is_open(c)) continue;
            if (nb_gate_is_over(g)) return 0;
            char what[200];
            snprintf(what, sizeof what, "%s %.150s", stage_names[stage], c->c.variant);
            nb_progress(done++, total, nb_now_s() - g->started_s, what);
            int result = launch_case(g, c, stage, first + l);
            if (result != 0) return result;
        }
    return 0;
}

/* ---- stages --------------------------------------------------------------------------------------------------------- */

static struct nb_gate_evidence evidence_of(const struct nb_gate *g, const struct nb_gate_case *c,
                                           enum nb_gate_stage stage, size_t k) {
    return (struct nb_gate_evidence){.screen = c->screen,
                                     .confirm = c->confirm,
                                     .n_screen = c->n_screen,
                                     .n_confirm = c->n_confirm,
                                     .stage = c->n_confirm > 0 ? stage : NB_GATE_SCREEN,
                                     .n_planned = 2 * (size_t)g->plan.confirm_launches,
                                     .n_confirming = k};
}

static void judge_all(struct nb_gate *g, enum nb_gate_stage stage, size_t k, bool exhausted) {
    for (size_t i = 0; i < g->n_cases; i++) {
        struct nb_gate_case *c = &g->cases[i];
        if (!is_open(c)) continue;
        const struct nb_gate_evidence e = evidence_of(g, c, stage, k);
        if (exhausted || c->n_screen == 0)
            nb_gate_judge_exhausted(&e, &g->plan.rule, &c->judgement);
        else
            nb_gate_judge(&e, &g->plan.rule, &c->judgement);
        if (c->judgement.verdict != NB_VERDICT_NONE) decide(c, c->judgement.verdict, c->judgement.reason);
    }
}

static int run_stages(struct nb_gate *g) {
    size_t k = count_open(g);
    int first = 0;
    for (int stage = NB_GATE_SCREEN; stage < NB_N_GATE_STAGES && count_open(g) > 0; stage++) {
        const int n = stage == NB_GATE_SCREEN ? g->plan.screen_launches : g->plan.confirm_launches;
        if (stage == NB_GATE_CONFIRM_1) k = count_open(g);
        int result = run_launches(g, (enum nb_gate_stage)stage, first, n);
        const bool exhausted = result != 0 || nb_gate_is_over(g);
        judge_all(g, (enum nb_gate_stage)stage, k, exhausted);
        if (exhausted) return result;
        first += n;
    }
    return 0;
}

int nb_gate_run(struct nb_gate *g) {
    assert(g && (g->cases || g->n_cases == 0));
    nb_gate_begin(g);
    int result = check_all(g);
    if (result == 0) result = run_stages(g);
    if (result != 0) judge_all(g, NB_GATE_SCREEN, 1, true);
    for (size_t i = 0; i < g->n_cases && result == 0; i++) {
        nb_progress((double)i, (double)g->n_cases, nb_now_s() - g->started_s, "looking behind what improved");
        result = nb_gate_doubt(g, &g->cases[i]);
    }
    for (size_t i = 0; i < g->n_cases; i++) gate_settle_budget(g, &g->cases[i]);
    nb_gate_end(g);
    return result;
}
