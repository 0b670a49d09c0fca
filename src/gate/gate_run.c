// SPDX-License-Identifier: Apache-2.0
/* Stages over cases. */
#include "src/gate/gate_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/stats.h"
#include "src/core/timer.h"
#include "src/gate/gate_budget.h"
#include "src/gate/gate_check.h"
#include "src/gate/gate_launch.h"
#include "src/measure/process.h"

static const char *const stage_names[NB_N_GATE_STAGES] = {"screening", "confirming", "confirming"};

static bool is_open(const struct nb_gate_case *c) { return c->verdict == NB_VERDICT_NONE; }

static size_t count_open(const struct nb_gate *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_cases; i++) n += is_open(&g->cases[i]);
    return n;
}

static void decide(struct nb_gate_case *c, enum nb_verdict verdict, const char *reason) {
    c->verdict = verdict;
    snprintf(c->reason, sizeof c->reason, "%s", reason);
}

/* ---- launches ------------------------------------------------------------------------------------------------------- */

static void keep(struct nb_gate_launch **list, size_t *n, const struct nb_gate_launch *launch) {
    *list = nb_realloc(*list, *n + 1, sizeof **list);
    (*list)[(*n)++] = *launch;
}

/* What the candidate breaks is the candidate's fault; a baseline that does not run cannot be compared with. */
static void take_failure(struct nb_gate_case *c, const struct nb_gate_answer *a) {
    char reason[240];
    const bool candidate = a->failed == NB_BUILD_CANDIDATE;
    snprintf(reason, sizeof reason, "%s while timed: %s%s", nb_build_names[a->failed < NB_N_BUILDS ? a->failed : 0],
             nb_status_name(a->status), a->reason[0] ? ", " : "");
    snprintf(reason + strlen(reason), sizeof reason - strlen(reason), "%.120s", a->reason);
    decide(c, candidate ? NB_VERDICT_WRONG : NB_VERDICT_NOT_COMPARABLE, reason);
}

static int launch(struct nb_gate *g, struct nb_gate_case *c, enum nb_gate_stage stage, int number) {
    const double start = nb_now_s();
    const int layout = number % g->builds.n_layouts;
    struct nb_gate_answer answer;
    struct nb_gate_request q = {.files = g->builds.files[layout],
                                .n_files = NB_N_BUILDS,
                                .n_arms = NB_N_BUILDS,
                                .launch = number,
                                .layout = layout,
                                .threads = c->c.threads,
                                .blocks = g->plan.blocks,
                                .sample_ms = g->plan.sample_ms,
                                .silence_s = g->plan.case_timeout_s,
                                .seed = g->plan.seed + c->c.seed};
    for (int b = 0; b < NB_N_BUILDS; b++) q.keys[b] = c->arm_keys[b];
    int result = nb_gate_launch_run(&q, &answer);
    c->seconds += nb_now_s() - start;
    if (result != 0) return result;
    if (answer.raw && g->record) g->record(c, stage, answer.raw, g->record_arg);
    cJSON_Delete(answer.raw);
    if (answer.status != NB_OK) {
        take_failure(c, &answer);
        return 0;
    }
    c->chunked = answer.chunked;
    for (int b = 0; b < NB_N_BUILDS; b++) {
        const double n = (double)(c->n_screen + c->n_confirm), old = n > 0 ? c->call_ns[b] : 0;
        c->call_ns[b] = old + (answer.call_ns[b] - old) / (n + 1);
    }
    const struct nb_gate_launch *value = &answer.launch[NB_BUILD_CANDIDATE];
    if (stage == NB_GATE_SCREEN)
        keep(&c->screen, &c->n_screen, value);
    else
        keep(&c->confirm, &c->n_confirm, value);
    return 0;
}

static bool out_of_time(const struct nb_gate *g) {
    return g->plan.budget_s > 0 && nb_now_s() - g->started_s > g->plan.budget_s;
}

/* Rounds over all open cases; *done counts launches for the progress line. */
static int run_launches(struct nb_gate *g, enum nb_gate_stage stage, int first, int n) {
    const double total = (double)n * (double)count_open(g);
    double done = 0;
    for (int l = 0; l < n; l++)
        for (size_t i = 0; i < g->n_cases; i++) {
            struct nb_gate_case *c = &g->cases[i];
            if (!is_open(c)) continue;
            if (out_of_time(g)) return 0;
            char what[200];
            snprintf(what, sizeof what, "%s %.150s", stage_names[stage], c->c.variant);
            nb_progress(done++, total, nb_now_s() - g->started_s, what);
            int result = launch(g, c, stage, first + l);
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
        const bool exhausted = result != 0 || out_of_time(g);
        judge_all(g, (enum nb_gate_stage)stage, k, exhausted);
        if (exhausted) return result;
        first += n;
    }
    return 0;
}

int nb_gate_run(struct nb_gate *g) {
    g->started_s = nb_now_s();
    nb_watch_interrupts();
    int result = nb_gate_check(g);
    if (result == 0) result = run_stages(g);
    if (result != 0) judge_all(g, NB_GATE_SCREEN, 1, true);
    for (size_t i = 0; i < g->n_cases; i++) nb_gate_settle_budget(g, &g->cases[i]);
    nb_progress_end();
    g->elapsed_s = nb_now_s() - g->started_s;
    return result;
}
