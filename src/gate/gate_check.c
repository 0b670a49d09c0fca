// SPDX-License-Identifier: Apache-2.0
/* Both builds of a case go to one worker, on the same inputs, before any timing. */
#include "src/gate/gate_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/accuracy/accuracy_json.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/gate/code_identity.h"
#include "src/gate/gate_budget.h"
#include "src/measure/process.h"
#include "src/measure/session.h"

static void decide(struct nb_gate_case *c, enum nb_verdict verdict, const char *reason) {
    c->verdict = verdict;
    snprintf(c->reason, sizeof c->reason, "%s", reason);
}

/* ---- what there is to compare ----------------------------------------------------------------------------------------- */

static bool is_comparable(struct nb_gate_case *c) {
    const struct nb_entry *baseline = c->entries[NB_BUILD_BASELINE], *candidate = c->entries[NB_BUILD_CANDIDATE];
    const char *reason = NULL;
    if (!baseline)
        reason = "the baseline has no such kernel";
    else if (!candidate)
        reason = "the candidate has no such kernel any more";
    else if (nb_gate_same_code(baseline, candidate))
        reason = nb_gate_same_code(baseline, candidate);
    if (reason) decide(c, NB_VERDICT_NOT_COMPARABLE, reason);
    return !reason;
}

struct codes {
    struct nb_code *baseline, *candidate; /* null: not to be compared as machine code */
};

static bool is_identical(const struct codes *codes, const struct nb_gate_case *c, enum nb_code_part part) {
    uint64_t a[2], b[2];
    char reason[200];
    return codes->baseline && codes->candidate &&
           nb_code_digest(codes->baseline, c->entries[NB_BUILD_BASELINE], part, a, reason, sizeof reason) == 0 &&
           nb_code_digest(codes->candidate, c->entries[NB_BUILD_CANDIDATE], part, b, reason, sizeof reason) == 0 &&
           a[0] == b[0] && a[1] == b[1];
}

static void open_codes(struct codes *codes, const struct nb_gate *g) {
    char reason[200];
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

const char *nb_gate_less_accurate(const struct nb_accuracy *baseline, const struct nb_accuracy *candidate) {
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

static void take(cJSON *line, void *arg) {
    struct checks *checks = arg;
    const char *type = nb_json_get_text(line, "type"), *key = nb_json_get_text(line, "key");
    for (int b = 0; b < NB_N_BUILDS && key && strcmp(type, "case") == 0; b++) {
        if (strcmp(key, checks->c->arm_keys[b]) != 0) continue;
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

/* Asks one worker after another until both have answered or died. */
static int ask(const struct nb_gate *g, struct checks *checks) {
    static const int builds[] = {NB_BUILD_BASELINE, NB_BUILD_CANDIDATE};
    for (int i = 0; i < 2; i++) {
        const int b = builds[i];
        const char *key = checks->c->arm_keys[b];
        int sample = 0;
        struct nb_outcome o;
        struct nb_job job = {.kind = NB_JOB_CHECK,
                             .launch = -1,
                             .plugins = (const char **)(uintptr_t)g->builds.files[0],
                             .n_plugins = NB_N_BUILDS,
                             .keys = &key,
                             .samples = &sample,
                             .n_cases = 1,
                             .check_only = true,
                             .digests_at = -1};
        nb_process_run(&job, -1, g->plan.case_timeout_s, g->plan.seed, take, checks, &o);
        if (o.ending == NB_NOT_STARTED) return -1;
        if (o.ending == NB_ENDED_BY_USER) return nb_interrupted();
        if (checks->answered[b]) continue;
        checks->status[b] = nb_session_blame(&o, checks->reason[b], sizeof checks->reason[b]);
    }
    return 0;
}

static void judge(const struct checks *checks) {
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
        const char *worse = nb_gate_less_accurate(&c->accuracy[NB_BUILD_BASELINE], &c->accuracy[NB_BUILD_CANDIDATE]);
        if (worse) decide(c, NB_VERDICT_LESS_ACCURATE, worse);
    }
}

static int check_case(struct nb_gate *g, struct nb_gate_case *c, const struct codes *codes) {
    struct checks checks = {.c = c};
    const double start = nb_now_s();
    if (c->verdict != NB_VERDICT_NONE || !is_comparable(c)) return 0;
    const bool identical = is_identical(codes, c, NB_CODE_TIMED);
    int result = 0;
    /* The same code that claims something else is checked against that. */
    if (!identical || !is_identical(codes, c, NB_CODE_ALL)) {
        result = ask(g, &checks);
        if (result == 0) judge(&checks);
    }
    const bool is_open = result == 0 && c->verdict == NB_VERDICT_NONE;
    if (is_open && identical) decide(c, NB_VERDICT_IDENTICAL, "");
    if (is_open && (!identical || nb_gate_has_budget(g, c, true))) {
        result = nb_gate_count(g, c);
        nb_gate_keep_budget(g, c);
    }
    c->seconds += nb_now_s() - start;
    return result;
}

int nb_gate_check(struct nb_gate *g) {
    struct codes codes = {0};
    int result = 0;
    if (!g->plan.ignore_identity) open_codes(&codes, g);
    for (size_t i = 0; i < g->n_cases && result == 0; i++) {
        nb_progress((double)i, (double)g->n_cases, nb_now_s() - g->started_s, "checking");
        result = check_case(g, &g->cases[i], &codes);
    }
    nb_code_close(codes.baseline);
    nb_code_close(codes.candidate);
    return result;
}
