// SPDX-License-Identifier: Apache-2.0
/* The gate's error rates by simulation, and each reason for not deciding. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "src/gate/gate_judge.h"
#include "tests/support/numerics.h"

enum { SCREEN = 12, CONFIRM = 24 };

/* What is 0 is as on a quiet machine. */
struct world {
    double effect, launch_sd;          /* ratio - 1; of ln ratio, 0: 0.003 */
    double heavy;                      /* share of launches with five times the deviation */
    double control_effect, per_layout; /* ratio - 1 of the copy; effect added in every other layout */
    double control_sd;                 /* of ln; 0: launch_sd */
    double preempted, min_effect;      /* min_effect 0: as the medians */
    int layouts;                       /* 0: one */
    size_t k;                          /* cases that go to confirmation beside this one */
};
static double sd_of(const struct world *w) { return w->launch_sd > 0 ? w->launch_sd : 0.003; }

static void make(struct nb_gate_launch *launches, size_t n, const struct world *w, uint64_t *state) {
    for (size_t i = 0; i < n; i++) {
        const int layout = w->layouts ? (int)i % w->layouts : 0;
        const double sd = sd_of(w) * (random_uniform(state) < w->heavy ? 5 : 1);
        const double extra = layout % 2 ? w->per_layout : 0;
        launches[i] = (struct nb_gate_launch){
            .ratio = log1p(w->effect + extra) + sd * random_normal(state),
            .control = log1p(w->control_effect) + (w->control_sd > 0 ? w->control_sd : sd) * random_normal(state),
            .order_effect = NAN,
            .preempted = w->preempted,
            .layout = layout};
        launches[i].ratio_min = w->min_effect ? log1p(w->min_effect) : launches[i].ratio;
    }
}

/* A whole gate of one case, stage by stage. */
static struct nb_gate_judgement gate(const struct world *w, uint64_t *state) {
    struct nb_gate_launch launches[SCREEN + 2 * CONFIRM];
    struct nb_gate_judgement j;
    make(launches, SCREEN, w, state);
    make(launches + SCREEN, 2 * CONFIRM, w, state);
    struct nb_gate_evidence e = {
        .launches = launches, .n_screen = SCREEN, .n_planned = 2 * CONFIRM, .n_confirming = 1 + w->k};
    nb_gate_judge(&e, &nb_gate_rule_default, &j);
    for (int stage = NB_GATE_CONFIRM_1; stage < NB_N_GATE_STAGES && j.verdict == NB_VERDICT_NONE; stage++) {
        e.stage = (enum nb_gate_stage)stage;
        e.n_confirm += CONFIRM;
        nb_gate_judge(&e, &nb_gate_rule_default, &j);
    }
    return j;
}

struct rates {
    int pass, regression, inconclusive;
};
static struct rates rates_of(struct world w, int trials, uint64_t seed) {
    struct rates r = {0};
    for (int t = 0; t < trials; t++) {
        const enum nb_verdict v = gate(&w, &seed).verdict;
        r.pass += v == NB_VERDICT_PASS || v == NB_VERDICT_IMPROVED;
        r.regression += v == NB_VERDICT_REGRESSION;
        r.inconclusive += v == NB_VERDICT_INCONCLUSIVE;
    }
    return r;
}

Test(gate_judge, identical_code_is_never_called_slower) {
    const double spreads[] = {0.001, 0.003, 0.01, 0.03};
    for (size_t i = 0; i < sizeof spreads / sizeof spreads[0]; i++) {
        const struct rates r = rates_of((struct world){.launch_sd = spreads[i], .heavy = 0.1}, 1000, 1 + i);
        cr_expect_eq(r.regression, 0, "%d of 1000 at %g", r.regression, spreads[i]);
        if (spreads[i] <= 0.01) cr_expect_geq(r.pass, 990, "%d of 1000 at %g", r.pass, spreads[i]);
    }
}

/* At the margin itself, the hardest null, the whole run's level holds: 10 of 1000 are expected at most; 25 have a chance below 1e-4. */
Test(gate_judge, level_holds_at_the_margin) {
    const struct rates r = rates_of((struct world){.effect = nb_gate_rule_default.fail_margin, .heavy = 0.1}, 1000, 11);
    cr_expect_leq(r.regression, 25, "%d of 1000", r.regression);
}

/* Cases that share the level: at the margin the chance of any of ten is below the level. */
Test(gate_judge, level_holds_for_the_whole_run) {
    const struct world w = {.effect = nb_gate_rule_default.fail_margin, .k = 9};
    int runs_with_alarm = 0;
    uint64_t state = 12;
    for (int run = 0; run < 300; run++) {
        bool alarm = false;
        for (int c = 0; c < 10; c++) alarm |= gate(&w, &state).verdict == NB_VERDICT_REGRESSION;
        runs_with_alarm += alarm;
    }
    cr_expect_leq(runs_with_alarm, 11, "%d of 300", runs_with_alarm); /* P(more) < 1e-4 at 1 % */
}

Test(gate_judge, finds_what_it_promises) {
    const double noisiest = 0.011; /* of the machines seen */
    cr_expect_geq(rates_of((struct world){.effect = 0.03}, 300, 21).regression, 290);
    cr_expect_geq(rates_of((struct world){.effect = 0.03, .launch_sd = noisiest}, 300, 22).regression, 240);
    cr_expect_geq(rates_of((struct world){.effect = 0.05, .launch_sd = noisiest}, 300, 23).regression, 290);
}

Test(gate_judge, does_not_pass_what_is_slower_by_the_margin_of_acceptance) {
    struct world w = {.effect = nb_gate_rule_default.pass_margin};
    const struct rates r = rates_of(w, 1000, 31);
    cr_expect_leq(r.pass, 50, "%d of 1000", r.pass);
    w.launch_sd = 0.02;
    cr_expect_leq(rates_of(w, 1000, 32).pass, 75);
}

Test(gate_judge, faster_is_improved) {
    uint64_t state = 41;
    cr_expect_eq(gate(&(struct world){.effect = -0.04}, &state).verdict, NB_VERDICT_IMPROVED);
    cr_expect_eq(gate(&(struct world){.effect = -0.005}, &state).verdict, NB_VERDICT_PASS);
}

static void expect_inconclusive(struct world w, const char *why) {
    uint64_t state = 51;
    const struct nb_gate_judgement j = gate(&w, &state);
    cr_expect(j.verdict == NB_VERDICT_INCONCLUSIVE && strstr(j.reason, why), "%s, effect %g, of the copy %g: %s, %s",
              why, w.effect, w.control_effect, nb_verdict_name(j.verdict), j.reason);
}

Test(gate_judge, unfit_measurements_decide_nothing) {
    expect_inconclusive((struct world){.effect = 0.08, .control_effect = 0.06}, "copy of the baseline");
    expect_inconclusive((struct world){.preempted = 0.5}, "moved to another CPU");
    expect_inconclusive((struct world){.effect = 0.05, .min_effect = -0.03}, "fastest samples");
    expect_inconclusive((struct world){.launch_sd = 0.2, .control_sd = 0.001}, "neither surely");
}

/* A sample that is long, since the candidate is slow, sees a switch whenever the machine is busy. */
Test(gate_judge, switches_leave_nothing_open_where_the_candidate_is_far_slower) {
    struct world w = {.preempted = 1, .effect = 2};
    cr_expect_eq(rates_of(w, 20, 51).regression, 20);
    cr_expect(isnan(gate(&w, &(uint64_t){51}).smallest_effect), "launches of fewer pairs say nothing of small effects");
    w.min_effect = 0.9; /* the fastest samples are nearer */
    cr_expect_eq(rates_of(w, 20, 52).inconclusive, 20);
    cr_expect_eq(rates_of((struct world){.preempted = 1, .effect = 0.9}, 20, 53).inconclusive, 20);
}

/* The few short pairs of such a candidate make the control noisy, not the answer. */
Test(gate_judge, a_noisy_control_leaves_nothing_open_where_the_candidate_is_far_slower) {
    static const struct world open[] = {
        {.effect = 1.5, .control_effect = 0.8, .control_sd = 0.1}, /* nearly as slow as the candidate */
        {.effect = 1.5, .control_effect = -0.5, .control_sd = 0.1},
        {.effect = 0.9, .control_effect = 0.06, .control_sd = 0.001},
        {.effect = 1.5, .control_effect = 0.06, .control_sd = 0.001, .min_effect = 0.9}}; /* its fastest are nearer */
    struct world w = {.control_effect = 0.06, .control_sd = 0.1, .effect = 1.5};
    cr_expect_eq(rates_of(w, 20, 71).regression, 20);
    w.control_effect = -0.06;
    cr_expect_eq(rates_of(w, 20, 72).regression, 20);
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) expect_inconclusive(open[i], "copy of the baseline");
}

Test(gate_judge, an_effect_of_some_layouts_is_no_regression) {
    uint64_t state = 61;
    expect_inconclusive((struct world){.layouts = 4, .effect = -0.03, .per_layout = 0.09},
                        "sign depends on the layout");
    expect_inconclusive((struct world){.layouts = 4, .per_layout = 0.06}, "size depends on the layout");
    cr_expect_eq(gate(&(struct world){.layouts = 4, .effect = 0.05}, &state).verdict, NB_VERDICT_REGRESSION);
}

Test(gate_judge, out_of_time_is_never_a_pass_for_what_was_suspected) {
    struct nb_gate_launch screen[SCREEN];
    struct nb_gate_judgement j;
    struct world w = {.effect = 0.02};
    uint64_t state = 71;
    make(screen, SCREEN, &w, &state);
    struct nb_gate_evidence e = {.launches = screen, .n_screen = SCREEN, .n_confirming = 1};
    nb_gate_judge_exhausted(&e, &nb_gate_rule_default, &j);
    cr_expect(j.flagged);
    cr_expect_eq(j.verdict, NB_VERDICT_INCONCLUSIVE);
    cr_expect(strstr(j.reason, "time ran out") != NULL, "%s", j.reason);
    w.effect = 0;
    make(screen, SCREEN, &w, &state);
    nb_gate_judge_exhausted(&e, &nb_gate_rule_default, &j);
    cr_expect_eq(j.verdict, NB_VERDICT_PASS);
    e.n_screen = 3;
    nb_gate_judge_exhausted(&e, &nb_gate_rule_default, &j);
    cr_expect(j.verdict == NB_VERDICT_INCONCLUSIVE && strstr(j.reason, "after 3 launches"), "%s", j.reason);
    e.n_screen = 0;
    nb_gate_judge_exhausted(&e, &nb_gate_rule_default, &j);
    cr_expect_eq(j.verdict, NB_VERDICT_INCONCLUSIVE);
}

/* What it says it would have seen, it sees. */
Test(gate_judge, smallest_effect_is_seen) {
    struct world w = {.launch_sd = 0.008, .effect = 0.025};
    uint64_t state = 81;
    struct nb_gate_judgement j = gate(&w, &state);
    for (int i = 0; i < 20 && j.verdict != NB_VERDICT_REGRESSION; i++) j = gate(&w, &state);
    cr_assert_gt(j.smallest_effect, 0.01);
    cr_assert_lt(j.smallest_effect, 0.03);
    /* From the true spread, not from one gate's estimate of it. */
    struct nb_gate_evidence e = {.n_screen = SCREEN, .n_planned = 2 * CONFIRM, .n_confirming = 1};
    w.effect = nb_gate_smallest(&e, &nb_gate_rule_default, w.launch_sd);
    const int found = rates_of(w, 1000, 82).regression;
    cr_expect_geq(found, 930, "%d of 1000 at %g", found, w.effect);
    cr_expect_leq(found, 999, "%d of 1000 at %g: it could have claimed less", found, w.effect);
}
