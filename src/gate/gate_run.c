// SPDX-License-Identifier: Apache-2.0
/* Budgets, then what is known of a case before it is timed, then stages over cases. */
#include "src/gate/gate.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/gate/code_identity.h"
#include "src/measure/process.h"
#include "src/plan/cells.h"

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

/* REGRESSION with over_budget where a count is above a budget. */
static void gate_keep_budget(const struct nb_gate *g, struct nb_gate_case *c) {
    const double counted = c->instructions[NB_BUILD_CANDIDATE], before = c->instructions[NB_BUILD_BASELINE];
    for (size_t i = 0; i < g->settings.n_budgets; i++) {
        const struct nb_instruction_budget *b = &g->settings.budgets[i];
        const double most = b->relative ? (1 + b->most) * before : b->most;
        if (!is_bound_by(b, c) || !(counted > most)) continue;
        c->over_budget = true;
        if (b->relative)
            nb_gate_decide(c, NB_VERDICT_REGRESSION,
                           "instructions: %.0f against the baseline's %.0f (%+.2f%%), \"%.60s\" allows +%g%%", counted,
                           before, 100 * (counted / before - 1), b->filter, 100 * b->most);
        else
            nb_gate_decide(c, NB_VERDICT_REGRESSION, "instructions: %.0f, \"%.60s\" allows %.0f", counted, b->filter,
                           most);
        return;
    }
}

/* At the end: what passed while its budget could not be looked at is INCONCLUSIVE. */
static void gate_settle_budget(const struct nb_gate *g, struct nb_gate_case *c) {
    const bool passed =
        c->verdict == NB_VERDICT_PASS || c->verdict == NB_VERDICT_IMPROVED || c->verdict == NB_VERDICT_IDENTICAL;
    if (!passed || !c->uncounted[0] || !gate_has_budget(g, c, c->verdict == NB_VERDICT_IDENTICAL)) return;
    nb_gate_decide(c, NB_VERDICT_INCONCLUSIVE, "its budget of instructions cannot be looked at: %.150s", c->uncounted);
}

/* ---- what there is to compare ----------------------------------------------------------------------------------------- */

static bool is_comparable(const struct nb_gate *g, struct nb_gate_case *c) {
    const struct nb_gate_subject *s = g->subject;
    const bool baseline = s->has(c, NB_BUILD_BASELINE), candidate = s->has(c, NB_BUILD_CANDIDATE);
    const char *reason = baseline && candidate && s->refuses ? s->refuses(c) : NULL;
    if (reason) nb_gate_decide(c, NB_VERDICT_NOT_COMPARABLE, "%s", reason);
    if (!baseline || !candidate)
        nb_gate_decide(c, NB_VERDICT_NOT_COMPARABLE, "the %s has no such %s%s",
                       nb_build_names[baseline ? NB_BUILD_CANDIDATE : NB_BUILD_BASELINE], s->noun,
                       baseline ? " any more" : "");
    return c->verdict == NB_VERDICT_NONE;
}

struct codes {
    const struct nb_gate_subject *subject;
    bool same_bytes;                      /* nothing can differ */
    struct nb_code *baseline, *candidate; /* null: not to be compared as machine code */
    size_t n_unknown;                     /* kernels whose code cannot be followed to its end, */
    char why[200];                        /* the first for this reason */
};

static bool is_known(struct codes *codes, const struct nb_code *code, const struct nb_gate_case *c, int build,
                     enum nb_code_part part, uint64_t digest[2]) {
    char reason[200];
    if (codes->subject->digest(code, c, build, part, digest, reason, sizeof reason) == 0) return true;
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

/* ---- before timing --------------------------------------------------------------------------------------------------- */

static int check_case(const struct nb_gate *g, struct nb_gate_case *c, struct codes *codes) {
    const double start = nb_now_s();
    if (c->verdict != NB_VERDICT_NONE || !is_comparable(g, c)) return 0;
    const bool identical = is_identical(codes, c, NB_CODE_TIMED);
    int result = 0;
    /* The same code that says something else of its results is checked by that. */
    if (!identical || !is_identical(codes, c, NB_CODE_ALL)) result = g->subject->check(g, c);
    const bool is_open = result == 0 && c->verdict == NB_VERDICT_NONE;
    if (is_open && identical) c->verdict = NB_VERDICT_IDENTICAL;
    if (is_open && (!identical || gate_has_budget(g, c, true))) {
        if (g->subject->count) result = g->subject->count(g, c);
        gate_keep_budget(g, c);
    }
    c->seconds += nb_now_s() - start;
    return result;
}

/* Decides the cases that need no timing. 0, -1 after nb_error, or a signal's number. */
static int check_all(struct nb_gate *g) {
    struct codes codes = {.subject = g->subject};
    int result = 0;
    if (!g->plan.ignore_identity) open_codes(&codes, g);
    for (size_t i = 0; i < g->n_cases && result == 0; i++) {
        nb_progress_between((double)i, (double)g->n_cases, INFINITY, nb_now_s() - g->started_s, "checking");
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

/* What the candidate breaks is the candidate's fault; a baseline that does not run cannot be compared with. A build that is right when it
 * runs alone was spoilt by the one beside it: is_spoilt. */
static void take_failure(struct nb_gate_case *c, const struct nb_gate_answer *a, bool is_spoilt) {
    const bool candidate = a->failed == NB_BUILD_CANDIDATE || is_spoilt;
    const int build = candidate ? NB_BUILD_CANDIDATE : a->failed < NB_N_BUILDS ? a->failed : NB_BUILD_BASELINE;
    c->wrong_when_timed = candidate;
    nb_gate_decide(c, candidate ? NB_VERDICT_WRONG : NB_VERDICT_NOT_COMPARABLE, "%s while timed: %s%s%.120s%s",
                   nb_build_names[build], nb_status_name(a->status), a->reason[0] ? ", " : "", a->reason,
                   is_spoilt ? " (seen in the baseline beside it, which is right alone)" : "");
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
    const int result = nb_gate_launch_run(&q, &answer, NULL);
    *is_right = result == 0 && answer.status == NB_OK;
    return result;
}

/* Did every launch of the screening find the candidate so slow, by medians and by fastest samples, that a few short pairs show it? Its
 * samples are as much longer as it is slower. */
enum { FAR_BLOCKS = 10, FAR_SHORTER = 10 };
static bool is_far(const struct nb_gate_case *c) {
    const double far = log(NB_GATE_FAR);
    for (size_t i = 0; i < c->launches.n_screen; i++)
        if (!(c->launches.launches[i].ratio > far && c->launches.launches[i].ratio_min > far)) return false;
    return c->launches.n_screen > 0;
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
        const double n = (double)(c->launches.n_screen + c->launches.n_confirm), old = n > 0 ? c->call_ns[b] : 0;
        c->call_ns[b] = old + (answer.call_ns[b] - old) / (n + 1);
    }
    nb_gate_evidence_add(&c->launches, stage, &answer.launch[NB_BUILD_CANDIDATE]);
    return 0;
}

/* Rounds over all open cases. How many go on to the stages that follow is not known yet. */
static int run_launches(struct nb_gate *g, enum nb_gate_stage stage, int first, int n) {
    const double total = (double)n * (double)count_open(g), started = nb_now_s(),
                 to_come = (double)((NB_N_GATE_STAGES - 1 - stage) * g->plan.confirm_launches) * (double)count_open(g);
    double done = 0;
    for (int l = 0; l < n; l++)
        for (size_t i = 0; i < g->n_cases; i++) {
            struct nb_gate_case *c = &g->cases[i];
            if (!is_open(c)) continue;
            if (nb_gate_is_over(g)) return 0;
            char what[200];
            snprintf(what, sizeof what, "%s %.150s", stage_names[stage], c->c.variant);
            nb_progress_between(done++, total, total + to_come, nb_now_s() - started, what);
            int result = launch_case(g, c, stage, first + l);
            if (result != 0) return result;
        }
    return 0;
}

/* ---- stages --------------------------------------------------------------------------------------------------------- */

static void judge_all(struct nb_gate *g, enum nb_gate_stage stage, size_t k, bool exhausted) {
    for (size_t i = 0; i < g->n_cases; i++) {
        struct nb_gate_case *c = &g->cases[i];
        if (!is_open(c)) continue;
        struct nb_gate_evidence *e = &c->launches;
        e->stage = e->n_confirm > 0 ? stage : NB_GATE_SCREEN;
        e->n_planned = 2 * (size_t)g->plan.confirm_launches;
        e->n_confirming = k;
        e->ended_by = nb_interrupted();
        if (exhausted || e->n_screen == 0)
            nb_gate_judge_exhausted(e, &g->plan.rule, &c->judgement);
        else
            nb_gate_judge(e, &g->plan.rule, &c->judgement);
        if (c->judgement.verdict != NB_VERDICT_NONE) nb_gate_decide(c, c->judgement.verdict, "%s", c->judgement.reason);
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
