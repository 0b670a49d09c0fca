// SPDX-License-Identifier: Apache-2.0
/* Levels, bounds, and the order in which they are looked at. */
#include "src/gate/gate_judge.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/plan/config.h"

const struct nb_gate_rule nb_gate_rule_default = {.fail_margin = NB_GATE_FAIL_MARGIN,
                                                  .pass_margin = NB_GATE_PASS_MARGIN,
                                                  .run_level = 0.01,
                                                  .pass_level = 0.05,
                                                  .screen_level = 0.05,
                                                  .most_preempted = 0.30};

/* Shares of the levels at each look. */
static const double pass_share[NB_N_GATE_STAGES] = {NB_GATE_CLEARING_SHARE, 0.2, 0.5};
static const double fail_share[NB_N_GATE_STAGES] = {0, 0.3, 0.7};

static const char *const names[NB_N_VERDICTS] = {
    "NONE",         "PASS (identical code)", "PASS",       "IMPROVED",      "SUSPECT",
    "INCONCLUSIVE", "NOT COMPARABLE",        "REGRESSION", "LESS ACCURATE", "WRONG"};

const char *nb_verdict_name(enum nb_verdict v) { return v < NB_N_VERDICTS ? names[v] : "?"; }

void nb_gate_evidence_add(struct nb_gate_evidence *e, enum nb_gate_stage stage, const struct nb_gate_launch *launch) {
    size_t n = e->n_screen + e->n_confirm;
    *NB_PUSH(e->launches, n) = *launch;
    ++*(stage == NB_GATE_SCREEN ? &e->n_screen : &e->n_confirm);
}

/* ---- launch values -------------------------------------------------------------------------------------------------- */

enum member { RATIO, CONTROL, RATIO_MIN, ORDER_EFFECT, PREEMPTED };

static double member_of(const struct nb_gate_launch *l, enum member m) {
    const double values[] = {l->ratio, l->control, l->ratio_min, l->order_effect, l->preempted};
    return values[m];
}

struct values {
    double *v;
    size_t n;
};

static void values_release(struct values *values) { free(values->v); }

static struct values values_of(const struct nb_gate_launch *launches, size_t n, enum member m) {
    struct values out = {.v = nb_alloc(n + 1, sizeof *out.v)};
    for (size_t i = 0; i < n; i++) {
        const double value = member_of(&launches[i], m);
        if (isfinite(value)) out.v[out.n++] = value;
    }
    return out;
}

static struct values all_values(const struct nb_gate_evidence *e, enum member m) {
    return values_of(e->launches, e->n_screen + e->n_confirm, m);
}

static double median_of(const struct nb_gate_evidence *e, enum member m) {
    struct values all released_by(values_release) = all_values(e, m);
    return nb_median(all.v, all.n);
}

/* One-sided bounds at `level` each. */
static struct nb_interval bounds(const struct values *values, double level) {
    return nb_over_launches(values->v, values->n, 1 - 2 * level);
}

static double sd_of(const struct values *values) {
    double mean = 0, squares = 0;
    if (values->n < 2) return NAN;
    for (size_t i = 0; i < values->n; i++) mean += values->v[i] / (double)values->n;
    for (size_t i = 0; i < values->n; i++) squares += (values->v[i] - mean) * (values->v[i] - mean);
    return sqrt(squares / (double)(values->n - 1));
}

static bool is_far(const struct nb_gate_judgement *out) {
    return out->ratio.low > NB_GATE_FAR && out->ratio_min > NB_GATE_FAR;
}

/* ---- what makes a measurement unfit ----------------------------------------------------------------------------------- */

/* True, so that a function can end with it. */
#define because(out, ...) nb_reason((out)->reason, sizeof(out)->reason, __VA_ARGS__)

/* The copy of the baseline is the baseline: what makes it differ makes the candidate differ. */
static bool control_is_off(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule,
                           struct nb_gate_judgement *out) {
    struct values control released_by(values_release) = all_values(e, CONTROL);
    const struct nb_interval ln = bounds(&control, 0.025);
    out->control = nb_interval_exp(ln);
    if (!isfinite(ln.value) || fabs(ln.value) <= log1p(rule->fail_margin)) return false;
    return because(out, "a byte copy of the baseline differs from it by %+.1f%%", 100 * expm1(ln.value));
}

struct layout_effects {
    double least, most;
    int n;
};

static struct layout_effects by_layout(const struct nb_gate_evidence *e) {
    struct layout_effects effects = {INFINITY, -INFINITY, 0};
    const size_t n = e->n_screen + e->n_confirm;
    struct values one released_by(values_release) = {.v = nb_alloc(n + 1, sizeof(double))};
    for (int layout = 0; layout < 64; layout++) {
        one.n = 0;
        for (size_t i = 0; i < n; i++) {
            const struct nb_gate_launch *l = &e->launches[i];
            if (l->layout == layout && isfinite(l->ratio)) one.v[one.n++] = l->ratio;
        }
        if (one.n < 3) continue;
        const double effect = nb_median(one.v, one.n);
        effects.least = fmin(effects.least, effect);
        effects.most = fmax(effects.most, effect);
        effects.n++;
    }
    return effects;
}

/* A change of the code is slower in every build of it; what comes and goes with padding and order is the layout's. The spread that
 * chance alone makes between medians of few launches is allowed for. */
static bool depends_on_layout(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule,
                              struct nb_gate_judgement *out) {
    const struct layout_effects effects = by_layout(e);
    out->layout_spread = effects.n >= 2 ? expm1(effects.most) - expm1(effects.least) : (double)NAN;
    if (effects.n < 2) return false;
    const double per_layout = (double)(e->n_screen + e->n_confirm) / effects.n;
    const double chance = 1.2533 * out->launch_sd / sqrt(per_layout); /* standard deviation of a median, sqrt(pi / 2) */
    if (effects.least < 0 && effects.most > 0 && effects.least < -2 * chance)
        return because(out, "the sign depends on the layout of the code: %+.1f%% to %+.1f%% over %d layouts",
                       100 * expm1(effects.least), 100 * expm1(effects.most), effects.n);
    if (effects.least < log1p(rule->fail_margin) && effects.most - effects.least > 4 * chance)
        return because(out, "the size depends on the layout of the code: %+.1f%% to %+.1f%% over %d layouts",
                       100 * expm1(effects.least), 100 * expm1(effects.most), effects.n);
    return false;
}

static bool is_unfit(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule, struct nb_gate_judgement *out) {
    if (control_is_off(e, rule, out)) {
        if (!is_far(out) || fabs(log(out->control.value)) > log(NB_GATE_FAR) / 2) return true;
        out->reason[0] = '\0'; /* few short pairs make the copy noisy too, and what is far stays so */
    }
    if (out->preempted > rule->most_preempted && !is_far(out)) /* long samples see a switch each */
        return because(out, "%.0f%% of the pairs were interrupted or moved to another CPU", 100 * out->preempted);
    const double median = log(out->ratio.value), least = log(out->ratio_min), margin = log1p(rule->fail_margin);
    if ((median > margin && least < -margin) || (median < -margin && least > margin))
        return because(out, "medians say %+.1f%%, fastest samples %+.1f%%", 100 * expm1(median), 100 * expm1(least));
    return false;
}

/* ---- the verdict ------------------------------------------------------------------------------------------------------ */

/* Each of screening and confirmation may take half of the 5 % of misses. */
static double missed_z(void) { return nb_normal_quantile(0.975); }

/* Screening keeps what is suspicious, or may be slower by the margin of acceptance. */
double nb_gate_kept_from(const struct nb_gate_rule *rule, double sd, size_t n_screen) {
    const double error = sd / sqrt((double)n_screen);
    const double pass_level = rule->pass_level * pass_share[NB_GATE_SCREEN];
    const double suspicious = log1p(rule->fail_margin) + nb_normal_quantile(1 - rule->screen_level) * error;
    const double possible = log1p(rule->pass_margin) - nb_normal_quantile(1 - pass_level) * error;
    return fmin(suspicious, possible) + missed_z() * error;
}

double nb_gate_found_from(const struct nb_gate_rule *rule, double sd, size_t n_confirm, size_t n_confirming) {
    const double level = rule->run_level * fail_share[NB_GATE_CONFIRM_2] / (double)n_confirming;
    const double z = nb_normal_quantile(1 - level) + missed_z();
    return log1p(rule->fail_margin) + z * sd / sqrt((double)n_confirm);
}

double nb_gate_smallest(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule, double sd) {
    const size_t n_confirm = e->n_planned > e->n_confirm ? e->n_planned : e->n_confirm;
    const double kept = nb_gate_kept_from(rule, sd, e->n_screen);
    if (n_confirm == 0) return expm1(fmax(kept, 0));
    return expm1(fmax(kept, nb_gate_found_from(rule, sd, n_confirm, e->n_confirming > 0 ? e->n_confirming : 1)));
}

static void describe(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule, struct nb_gate_judgement *out) {
    struct values all released_by(values_release) = all_values(e, RATIO);
    out->ratio = nb_interval_exp(bounds(&all, 0.025));
    out->launch_sd = sd_of(&all);
    out->ratio_min = exp(median_of(e, RATIO_MIN));
    out->order_effect = median_of(e, ORDER_EFFECT);
    out->preempted = median_of(e, PREEMPTED);
    /* A small effect would have had the pairs that far launches were spared. */
    const bool is_known = isfinite(out->ratio.low) && !is_far(out);
    out->smallest_effect = is_known ? nb_gate_smallest(e, rule, out->launch_sd) : (double)NAN;
}

static bool is_confirmed(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule,
                         struct nb_gate_judgement *out) {
    const double k = e->n_confirming > 0 ? (double)e->n_confirming : 1;
    struct values fresh released_by(values_release) = values_of(e->launches + e->n_screen, e->n_confirm, RATIO);
    const struct nb_interval ln = bounds(&fresh, rule->run_level * fail_share[e->stage] / k);
    out->confirmed = nb_interval_exp(ln);
    return ln.low > log1p(rule->fail_margin);
}

/* Does the last stage's own data still point to a regression? Then a PASS would come too early. */
static bool still_suspicious(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule) {
    const bool screening = e->stage == NB_GATE_SCREEN;
    struct values v released_by(values_release) =
        values_of(e->launches + (screening ? 0 : e->n_screen), screening ? e->n_screen : e->n_confirm, RATIO);
    return bounds(&v, rule->screen_level).low > log1p(rule->fail_margin);
}

static bool is_cleared(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule) {
    struct values all released_by(values_release) = all_values(e, RATIO);
    return bounds(&all, rule->pass_level * pass_share[e->stage]).high < log1p(rule->pass_margin);
}

static enum nb_verdict pass(const struct nb_gate_judgement *out, const struct nb_gate_rule *rule) {
    return out->ratio.high < 1 / (1 + rule->fail_margin) ? NB_VERDICT_IMPROVED : NB_VERDICT_PASS;
}

/* ---- states of the core ------------------------------------------------------------------------------------------------ */

enum nb_state nb_gate_state_of(const struct nb_gate_launch *launches, size_t n) {
    struct nb_by_state *ratios freed = nb_alloc(n + 1, sizeof *ratios);
    for (size_t i = 0; i < n; i++) {
        ratios[i] = launches[i].is_probed ? launches[i].ratio_in : NB_NO_STATE;
        ratios[i].ln[NB_ANY_STATE] = launches[i].ratio;
    }
    return nb_state_over_launches(ratios, n, 0.95);
}

struct nb_gate_launch nb_gate_launch_in(const struct nb_gate_launch *launch, enum nb_state state) {
    struct nb_gate_launch l = *launch;
    if (state == NB_ANY_STATE) return l;
    l.ratio = l.is_probed ? l.ratio_in.ln[state] : (double)NAN;
    l.control = l.is_probed ? l.control_in.ln[state] : (double)NAN;
    return l;
}

static size_t take_those_in(enum nb_state state, const struct nb_gate_launch *from, size_t n,
                            struct nb_gate_launch *to) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        to[kept] = nb_gate_launch_in(&from[i], state);
        kept += isfinite(to[kept].ratio);
    }
    return kept;
}

/* What is confirmed is so by launches of its own: where there are any they choose the state. */
static struct nb_gate_evidence in_one_state(const struct nb_gate_evidence *e, struct nb_gate_launch *launches,
                                            enum nb_state *state) {
    struct nb_gate_evidence s = *e;
    const struct nb_gate_launch *confirm = e->launches + e->n_screen;
    *state = e->n_confirm > 0 ? nb_gate_state_of(confirm, e->n_confirm) : nb_gate_state_of(e->launches, e->n_screen);
    s.launches = launches;
    s.n_screen = take_those_in(*state, e->launches, e->n_screen, launches);
    s.n_confirm = take_those_in(*state, confirm, e->n_confirm, launches + s.n_screen);
    return s;
}

static void judge_in_state(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule,
                           struct nb_gate_judgement *out, bool last) {
    describe(e, rule, out);
    struct nb_gate_evidence screened = *e;
    screened.stage = NB_GATE_SCREEN;
    screened.n_confirm = 0;
    out->flagged = still_suspicious(&screened, rule);
    const bool unfit = is_unfit(e, rule, out), layout = depends_on_layout(e, rule, out);
    const bool confirmed = e->stage != NB_GATE_SCREEN && is_confirmed(e, rule, out);
    const bool suspicious = still_suspicious(e, rule);
    if (unfit || (layout && (confirmed || suspicious))) {
        out->verdict = last ? NB_VERDICT_INCONCLUSIVE : NB_VERDICT_NONE;
        return;
    }
    out->reason[0] = '\0';
    if (confirmed) {
        because(out, "slower by %.1f%% at least, in launches of their own", 100 * (out->confirmed.low - 1));
        out->verdict = NB_VERDICT_REGRESSION;
    } else if ((!suspicious || last) && is_cleared(e, rule)) {
        out->verdict = pass(out, rule);
    } else if (last) {
        because(out, "time %+.1f%% [%.1f, %.1f]: neither surely more than %.3g%% slower nor surely less than %.3g%%",
                100 * (out->ratio.value - 1), 100 * (out->ratio.low - 1), 100 * (out->ratio.high - 1),
                100 * rule->fail_margin, 100 * rule->pass_margin);
        out->verdict = NB_VERDICT_INCONCLUSIVE;
    }
}

static void judge(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule, struct nb_gate_judgement *out,
                  bool last) {
    *out = (struct nb_gate_judgement){.confirmed = {NAN, NAN, NAN}, .layout_spread = NAN};
    struct nb_gate_launch *launches freed = nb_alloc(e->n_screen + e->n_confirm + 1, sizeof *launches);
    const struct nb_gate_evidence s = in_one_state(e, launches, &out->state);
    judge_in_state(&s, rule, out, last);
}

void nb_gate_judge(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule, struct nb_gate_judgement *out) {
    assert(e->n_screen > 0 && (e->n_confirm > 0) == (e->stage != NB_GATE_SCREEN));
    judge(e, rule, out, e->stage == NB_GATE_CONFIRM_2);
}

void nb_gate_judge_exhausted(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule,
                             struct nb_gate_judgement *out) {
    char end[40] = "the time ran out";
    if (e->ended_by) snprintf(end, sizeof end, "signal %d ended the gate", e->ended_by);
    if (e->n_screen == 0) {
        *out = (struct nb_gate_judgement){.verdict = NB_VERDICT_INCONCLUSIVE};
        because(out, "%s before it was measured", end);
        return;
    }
    judge(e, rule, out, true);
    const bool stands = out->verdict == NB_VERDICT_REGRESSION || !out->flagged;
    if (stands && out->verdict != NB_VERDICT_INCONCLUSIVE) return;
    out->verdict = NB_VERDICT_INCONCLUSIVE;
    if (!out->reason[0] || out->flagged) because(out, "what screening saw is not confirmed");
    if (!isfinite(out->ratio.low)) because(out, "too few launches for an interval");
    const size_t n = strlen(out->reason);
    snprintf(out->reason + n, sizeof out->reason - n, " (%s after %zu launches)", end, e->n_screen + e->n_confirm);
}
