// SPDX-License-Identifier: Apache-2.0
/* Is an improvement too good to be believed? After timing, for the cases that are IMPROVED alone. README.md has the reasons of the rule. */
#include <math.h>
#include <stdlib.h>

#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/registry.h"
#include "src/gate/gate.h"
#include "src/measure/paired.h"
#include "src/measure/timing.h"

/* A change that leaves the number of instructions alone can break up a chain of dependent ones: additions that wait 4 cycles each become two
 * a cycle. */
static const double most_by_order = 8;

enum { DOUBT_LAUNCHES = 6 };

static void doubt_instructions(struct nb_gate_case *c) {
    const double instructions = c->instructions[NB_BUILD_CANDIDATE] / c->instructions[NB_BUILD_BASELINE];
    if (instructions / c->judgement.ratio.high > most_by_order)
        nb_gate_decide(c, NB_VERDICT_SUSPECT, "at most %.2g%% of the baseline's time for %.3g%% of its instructions",
                       100 * c->judgement.ratio.high, 100 * instructions);
}

/* ---- the baseline, without the candidate ---------------------------------------------------------------------------------- */

/* ns of a call of the baseline in a launch of its own; NaN: it did not come to its end. */
static double baseline_ns(const struct nb_gate *g, const struct nb_gate_case *c, int launch, bool is_alone,
                          int *result) {
    struct nb_gate_request q = nb_gate_request_of(g, c, launch);
    struct nb_gate_answer answer = {0};
    if (is_alone) q.n_files = q.n_arms = 1; /* the baseline is the first */
    *result = nb_gate_launch_run(&q, &answer, NULL);
    return *result == 0 && answer.status == NB_OK ? answer.call_ns[NB_BUILD_BASELINE] : (double)NAN;
}

/* A candidate that leaves the caches or the core worse than it found them slows all that comes behind it, and looks faster than it is. */
static int doubt_baseline(const struct nb_gate *g, struct nb_gate_case *c) {
    double ln[DOUBT_LAUNCHES];
    int result = 0;
    for (int l = 0; l < DOUBT_LAUNCHES; l++) {
        double ns[2];
        for (int turn = 0; turn < 2 && result == 0; turn++) {
            const bool is_alone = (l + turn) % 2 == 0;
            ns[is_alone] = baseline_ns(g, c, l, is_alone, &result);
        }
        if (result != 0) return result;
        ln[l] = log(ns[false] / ns[true]);
    }
    const struct nb_interval longer = nb_interval_exp(nb_over_launches(ln, DOUBT_LAUNCHES, 0.95));
    if (longer.low > 1 + g->plan.rule.pass_margin)
        nb_gate_decide(c, NB_VERDICT_SUSPECT,
                       "beside the candidate the baseline takes longer than alone: by %.1f%% at least",
                       100 * (longer.low - 1));
    return 0;
}

/* ---- the copy ----------------------------------------------------------------------------------------------------------- */

/* The built-in copies with the case's loads and stores that can run here, as keys behind the candidate's; owned. */
static void add_copies(struct nb_gate_request *q, const struct nb_case *c) {
    int n_loads, n_stores;
    nb_op_tensors(c->op, c->pass, &n_loads, &n_stores);
    for (size_t i = 0; i < nb_registry_size() && q->n_arms < NB_GATE_ARMS; i++) {
        const struct nb_entry *e = nb_registry_at(i);
        const struct nb_kernel *k = e->kernel;
        if (k->op != NB_OP_COPY || e->plugin || k->dtype != c->dtype || k->pass != c->pass ||
            k->loads != (float)n_loads || k->stores != (float)n_stores || nb_cpu_refuses(k->cpu_features, k->width))
            continue;
        struct nb_case copy = *c;
        nb_case_set_entry(&copy, e);
        q->keys[q->n_arms++] = nb_case_key(&copy);
    }
}

/* ln(time of the launch's fastest copy / the candidate's); NaN: the launch did not come to its end. */
static double vs_copy_of(const struct nb_gate_request *q, int *result) {
    struct nb_gate_answer answer = {0};
    double least = NAN;
    *result = nb_gate_launch_run(q, &answer, NULL);
    for (int i = 1; i < q->n_arms && *result == 0 && answer.status == NB_OK; i++)
        least = fmin(least, answer.launch[i].ratio);
    return least;
}

int nb_gate_doubt_copy(const struct nb_gate *g, struct nb_gate_case *c) {
    double ln[DOUBT_LAUNCHES];
    int result = 0;
    struct nb_gate_request q = nb_gate_request_of(g, c, 0);
    q.keys[0] = c->arm_keys[NB_BUILD_CANDIDATE];
    q.n_arms = 1;
    add_copies(&q, &c->c);
    for (int l = 0; l < DOUBT_LAUNCHES && q.n_arms > 1 && result == 0; l++) {
        q.launch = l;
        ln[l] = vs_copy_of(&q, &result);
    }
    const bool measured = q.n_arms > 1 && result == 0;
    const struct nb_interval copy =
        measured ? nb_interval_exp(nb_over_launches(ln, DOUBT_LAUNCHES, 0.9)) : (struct nb_interval){NAN, NAN, NAN};
    if (copy.low > NB_AS_FAST)
        nb_gate_decide(c, NB_VERDICT_SUSPECT, "faster than a copy of the same bytes: by %.1f%% at least",
                       100 * (copy.low - 1));
    for (int i = 1; i < q.n_arms; i++) free((char *)(uintptr_t)q.keys[i]);
    return result;
}

int nb_gate_doubt(const struct nb_gate *g, struct nb_gate_case *c) {
    int result = 0;
    if (c->verdict == NB_VERDICT_IMPROVED) doubt_instructions(c);
    if (c->verdict == NB_VERDICT_IMPROVED) result = doubt_baseline(g, c);
    if (result != 0) return result;
    return c->verdict == NB_VERDICT_IMPROVED && g->subject->doubt ? g->subject->doubt(g, c) : 0;
}
