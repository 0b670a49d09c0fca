// SPDX-License-Identifier: Apache-2.0
/* Normal theory proposes a plan, simulated gates dispose. */
#include "src/gate/calibration_plan.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/log.h"
#include "src/core/random.h"

/* Shares of the levels as src/gate/gate_judge.c spends them at the looks that decide here: PASS after screening, REGRESSION at the end. */
#define PASS_SHARE 0.3
#define FAIL_SHARE 0.7

/* Fewer launches, or fewer pairs in them, would be at the mercy of what happened in one of them. */
enum { GATE_ARMS = 3, FEWEST_SCREEN = 10, FEWEST_CONFIRM = 12, FEWEST_BLOCKS = 50 };

/* ---- simulated gates --------------------------------------------------------------------------------------------------- */

static void draw(struct nb_gate_launch *launches, size_t n, const struct nb_calibration *c, double scale, double effect,
                 uint64_t *random) {
    for (size_t i = 0; i < n; i++) {
        launches[i] = c->residuals[nb_random_next(random) % c->n_residuals];
        launches[i].ratio = log1p(effect) + scale * launches[i].ratio;
        launches[i].ratio_min = log1p(effect) + scale * launches[i].ratio_min;
        launches[i].control *= scale;
    }
}

struct rehearsal {
    struct nb_gate_launch *screen, *confirm;
    const struct nb_gate_design *plan;
};

static enum nb_verdict gate(const struct rehearsal *r, const struct nb_gate_rule *rule) {
    struct nb_gate_judgement j;
    struct nb_gate_evidence e = {
        .screen = r->screen, .confirm = r->confirm, .n_screen = (size_t)r->plan->screen_launches, .n_confirming = 1};
    nb_gate_judge(&e, rule, &j);
    for (int stage = NB_GATE_CONFIRM_1; stage < NB_N_GATE_STAGES && j.verdict == NB_VERDICT_NONE; stage++) {
        e.stage = (enum nb_gate_stage)stage;
        e.n_confirm += (size_t)r->plan->confirm_launches;
        nb_gate_judge(&e, rule, &j);
    }
    return j.verdict;
}

struct nb_gate_power nb_gate_power(const struct nb_calibration *c, const struct nb_gate_design *plan,
                                   const struct nb_gate_rule *rule, double effect, int draws, uint64_t seed) {
    const size_t n_screen = (size_t)plan->screen_launches, n_confirm = 2 * (size_t)plan->confirm_launches;
    const double scale = c->launch_sd > 0 ? nb_calibration_sd(c, plan->blocks) / c->launch_sd : 1;
    struct rehearsal r = {nb_alloc(n_screen, sizeof *r.screen), nb_alloc(n_confirm, sizeof *r.confirm), plan};
    const double share = pow(60.0 / (double)(n_screen + n_confirm), 2);
    int pass[2] = {0}, regression[2] = {0};
    assert(c->n_residuals > 0 && draws > 0);
    if (share < 1) draws = (int)fmax(fmin(draws, 60), share * draws);
    for (int d = 0; d < draws; d++)
        for (int there = 0; there < 2; there++) {
            draw(r.screen, n_screen, c, scale, there ? effect : 0, &seed);
            draw(r.confirm, n_confirm, c, scale, there ? effect : 0, &seed);
            const enum nb_verdict v = gate(&r, rule);
            pass[there] += v == NB_VERDICT_PASS || v == NB_VERDICT_IMPROVED;
            regression[there] += v == NB_VERDICT_REGRESSION;
        }
    free(r.screen);
    free(r.confirm);
    return (struct nb_gate_power){.pass_same = (double)pass[0] / draws,
                                  .regression_same = (double)regression[0] / draws,
                                  .regression_effect = (double)regression[1] / draws,
                                  .pass_effect = (double)pass[1] / draws};
}

/* ---- by normal theory ------------------------------------------------------------------------------------------------------ */

static double pass_z(const struct nb_gate_rule *rule) { return nb_normal_quantile(1 - rule->pass_level * PASS_SHARE); }

/* An effect is missed where screening clears it and where confirmation does not find it: each may take half of the misses. */
static double missed_z(void) { return nb_normal_quantile(1 - (1 - NB_WANTED_POWER) / 2); }

/* Logarithm of the ratio that confirmation finds. */
static double confirmed_from(const struct nb_gate_rule *rule, double sd, int confirm_launches) {
    const double z = nb_normal_quantile(1 - rule->run_level * FAIL_SHARE) + missed_z();
    return log1p(rule->fail_margin) + z * sd / sqrt(2.0 * confirm_launches);
}

/* ... that screening does not clear: it clears what is neither suspicious nor possibly slower by the margin of acceptance. */
static double kept_from(const struct nb_gate_rule *rule, double sd, int screen_launches) {
    const double error = sd / sqrt(screen_launches);
    const double suspicious = log1p(rule->fail_margin) + nb_normal_quantile(1 - rule->screen_level) * error;
    const double possible = log1p(rule->pass_margin) - pass_z(rule) * error;
    return fmin(suspicious, possible) + missed_z() * error;
}

double nb_gate_smallest_effect(const struct nb_calibration *c, const struct nb_gate_design *plan,
                               const struct nb_gate_rule *rule) {
    const double sd = nb_calibration_sd(c, plan->blocks);
    if (!isfinite(sd)) return NAN;
    return expm1(fmax(confirmed_from(rule, sd, plan->confirm_launches), kept_from(rule, sd, plan->screen_launches)));
}

double nb_gate_seconds(const struct nb_calibration *c, const struct nb_gate_design *plan, bool confirmed) {
    const double launch = c->overhead_s + GATE_ARMS * plan->blocks * c->sample_s;
    return launch * (plan->screen_launches + (confirmed ? 2 * plan->confirm_launches : 0));
}

/* Does screening clear a copy in so many of gates as are wanted? */
static bool clears(const struct nb_gate_rule *rule, double sd, int launches) {
    const double z = pass_z(rule) + nb_normal_quantile(NB_WANTED_POWER);
    return z * sd / sqrt(launches) <= log1p(rule->pass_margin);
}

/* False: more launches than are allowed. */
static bool propose(const struct nb_calibration *c, const struct nb_gate_rule *rule, double effect, int blocks,
                    struct nb_gate_design *plan) {
    const double sd = nb_calibration_sd(c, blocks), wanted = log1p(effect);
    *plan = (struct nb_gate_design){FEWEST_SCREEN, FEWEST_CONFIRM, blocks};
    while (plan->screen_launches <= NB_MOST_LAUNCHES &&
           (!clears(rule, sd, plan->screen_launches) || kept_from(rule, sd, plan->screen_launches) > wanted))
        plan->screen_launches++;
    while (plan->confirm_launches <= NB_MOST_LAUNCHES && confirmed_from(rule, sd, plan->confirm_launches) > wanted)
        plan->confirm_launches++;
    return plan->screen_launches <= NB_MOST_LAUNCHES && plan->confirm_launches <= NB_MOST_LAUNCHES;
}

/* ---- the plan ------------------------------------------------------------------------------------------------------------------ */

/* Signed-rank bounds are a little wider than normal ones, and real launches have tails: launches grow until simulated gates have the
 * power. Confirmation grows in any case: an effect that it does not see at its first look may pass there. */
static bool strengthen(const struct nb_calibration *c, const struct nb_gate_rule *rule, double effect, int draws,
                       struct nb_recommendation *out) {
    for (;;) {
        out->power = nb_gate_power(c, &out->plan, rule, effect, draws, 1);
        const bool cleared = out->power.pass_same >= NB_WANTED_POWER;
        const bool found = out->power.regression_effect >= NB_WANTED_POWER;
        if (cleared && found) return true;
        const bool too_soon = out->power.pass_effect > (1 - NB_WANTED_POWER) / 2;
        if (!cleared || (!found && too_soon)) out->plan.screen_launches += (out->plan.screen_launches + 3) / 4;
        if (!found) out->plan.confirm_launches += (out->plan.confirm_launches + 3) / 4;
        if (out->plan.screen_launches > NB_MOST_LAUNCHES || out->plan.confirm_launches > NB_MOST_LAUNCHES) return false;
    }
}

/* As noisy as the launches do not exclude. The residuals stay; nb_gate_power() scales them by these. */
static struct nb_calibration pessimistic(const struct nb_calibration *c) {
    struct nb_calibration worse = *c;
    const double factor = c->launch_sd > 0 ? c->launch_sd_high / c->launch_sd : 1;
    worse.within_sd *= factor;
    worse.between_sd *= factor;
    return worse;
}

void nb_gate_recommend(const struct nb_calibration *calibration, const struct nb_gate_rule *rule, double effect,
                       int draws, struct nb_recommendation *out) {
    const struct nb_calibration c = pessimistic(calibration);
    double least = INFINITY;
    *out = (struct nb_recommendation){0};
    assert(effect > rule->fail_margin);
    for (int blocks = FEWEST_BLOCKS; blocks <= NB_MOST_BLOCKS && isfinite(c.launch_sd); blocks *= 2) {
        struct nb_gate_design plan;
        if (!propose(&c, rule, effect, blocks, &plan)) continue;
        const double seconds = nb_gate_seconds(&c, &plan, true);
        if (seconds >= least) continue;
        least = seconds;
        out->plan = plan;
    }
    if (!isfinite(least)) return;
    out->is_found = strengthen(&c, rule, effect, draws, out);
    out->seconds_same = nb_gate_seconds(&c, &out->plan, false);
    out->seconds_effect = nb_gate_seconds(&c, &out->plan, true);
}

const char *nb_gate_hopeless(const struct nb_calibration *c, const struct nb_gate_design *plan,
                             const struct nb_gate_rule *rule) {
    static char text[200];
    const double smallest = nb_gate_smallest_effect(c, plan, rule);
    text[0] = '\0';
    if (!isfinite(c->launch_sd))
        snprintf(text, sizeof text, "too few launches were measured to say");
    else if (smallest > rule->pass_margin)
        snprintf(text, sizeof text, "the smallest effect it would find is %.1f %%, PASS is promised below %.3g %%",
                 100 * smallest, 100 * rule->pass_margin);
    else if (c->contaminated > rule->most_contaminated)
        snprintf(text, sizeof text, "%.0f %% of the pairs saw a switch or a migration; %.0f %% are the most",
                 100 * c->contaminated, 100 * rule->most_contaminated);
    for (int t = 0; t < NB_N_COPIES && !text[0]; t++)
        if (fabs(c->bias[t].value) > log1p(rule->fail_margin))
            snprintf(text, sizeof text, "a byte copy differs by %+.1f %%", 100 * expm1(c->bias[t].value));
    return text[0] ? text : NULL;
}
