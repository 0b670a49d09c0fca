// SPDX-License-Identifier: Apache-2.0
/* The noise: sums of squares within (case, replica), over their degrees of freedom. The plan: normal theory proposes, simulated gates
 * decide. */
#include "src/gate/calibration.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/timer.h"
#include "src/measure/paired.h"
#include "src/measure/process.h"

const char *const nb_replica_names[NB_N_REPLICAS] = {"control", "copy", "same"};

static bool is_whole(const struct nb_calibration_launch *l) {
    for (int t = 0; t < NB_N_REPLICAS; t++)
        if (!isfinite(l->replicas[t].ratio) || !isfinite(l->replicas[t].ratio_min) || !isfinite(l->replicas[t].halves))
            return false;
    return true;
}

/* ---- deviations from the mean of their case ---------------------------------------------------------------------------- */

enum figure { RATIO, RATIO_MIN };

static double figure_of(const struct nb_calibration_launch *l, int replica, enum figure f) {
    return f == RATIO ? l->replicas[replica].ratio : l->replicas[replica].ratio_min;
}

static double case_mean(const struct nb_calibration_launch *launches, size_t n, int case_index, int replica,
                        enum figure f) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (launches[i].case_index != case_index) continue;
        sum += figure_of(&launches[i], replica, f);
        count++;
    }
    return sum / (double)count;
}

/* Of one replica, pooled over cases. */
static double variance_of(const struct nb_calibration_launch *launches, size_t n, size_t n_cases, int replica,
                          enum figure f) {
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        const double mean = case_mean(launches, n, launches[i].case_index, replica, f);
        const double d = figure_of(&launches[i], replica, f) - mean;
        squares += d * d;
    }
    return n > n_cases ? squares / (double)(n - n_cases) : (double)NAN;
}

static double copies_sd(const struct nb_calibration_launch *launches, size_t n, size_t n_cases, enum figure f) {
    double sum = 0;
    for (int t = 0; t < NB_N_COPIES; t++) sum += variance_of(launches, n, n_cases, t, f) / NB_N_COPIES;
    return sqrt(sum);
}

/* Both roles of the two copies, so that a simulated launch keeps what a candidate and its control have in common. Means are taken out,
 * which makes deviations too small by sqrt((n - 1) / n) of their case; that is put back. */
static void keep_residuals(struct nb_calibration *out, const struct nb_calibration_launch *launches, size_t n) {
    const double widen = sqrt((double)n / (double)(n - out->n_cases));
    out->residuals = nb_alloc(NB_N_COPIES * n, sizeof *out->residuals);
    for (size_t i = 0; i < n; i++) {
        const struct nb_calibration_launch *l = &launches[i];
        double ratio[NB_N_COPIES], ratio_min[NB_N_COPIES];
        for (int t = 0; t < NB_N_COPIES; t++) {
            ratio[t] = widen * (l->replicas[t].ratio - case_mean(launches, n, l->case_index, t, RATIO));
            ratio_min[t] = widen * (l->replicas[t].ratio_min - case_mean(launches, n, l->case_index, t, RATIO_MIN));
        }
        for (int t = 0; t < NB_N_COPIES; t++)
            out->residuals[out->n_residuals++] = (struct nb_gate_launch){.ratio = ratio[t],
                                                                         .control = ratio[1 - t],
                                                                         .ratio_min = ratio_min[t],
                                                                         .order_effect = l->replicas[t].order_effect,
                                                                         .preempted = l->replicas[t].preempted};
    }
}

/* ---- the estimate ---------------------------------------------------------------------------------------------------------- */

/* The lower p-quantile of chi-squared by Wilson and Hilferty (1931), to 1 % from 5 degrees of freedom on. */
static double chi_squared_quantile(double p, double df) {
    const double t = 1 - 2 / (9 * df) + nb_normal_quantile(p) * sqrt(2 / (9 * df));
    return t > 0 ? df * t * t * t : 0;
}

static size_t count_cases(const struct nb_calibration_launch *launches, size_t n) {
    size_t cases = 0;
    for (size_t i = 0; i < n; i++) {
        size_t before = 0;
        while (before < i && launches[before].case_index != launches[i].case_index) before++;
        cases += before == i;
    }
    return cases;
}

/* Half the mean square of the difference between the halves is the variance of a half's median, and a quarter that of the
 * whole's. */
static double within_variance(const struct nb_calibration_launch *launches, size_t n) {
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        for (int t = 0; t < NB_N_COPIES; t++)
            squares += launches[i].replicas[t].halves * launches[i].replicas[t].halves;
    return squares / (4 * NB_N_COPIES * (double)n);
}

/* Medians over launches of what is no spread. */
static void take_costs(struct nb_calibration *out, const struct nb_calibration_launch *launches, size_t n) {
    double *v freed = nb_alloc(2 * n, sizeof *v);
    for (size_t i = 0; i < n; i++) {
        v[i] = launches[i].overhead_s;
        v[n + i] = launches[i].sample_s;
        for (int t = 0; t < NB_N_COPIES; t++) out->preempted += launches[i].replicas[t].preempted / (double)(2 * n);
    }
    out->overhead_s = nb_median(v, n);
    out->sample_s = nb_median(v + n, n);
}

static void take_biases(struct nb_calibration *out, const struct nb_calibration_launch *launches, size_t n) {
    double *v freed = nb_alloc(n, sizeof *v);
    for (int t = 0; t < NB_N_REPLICAS; t++) {
        for (size_t i = 0; i < n; i++) v[i] = launches[i].replicas[t].ratio;
        out->bias[t] = nb_over_launches(v, n, 0.95);
    }
    for (size_t i = 0; i < n; i++) v[i] = launches[i].replicas[NB_REPLICA_COPY].order_effect;
    out->order_effect = nb_over_launches(v, n, 0.95);
}

/* Of launches of one group's cases. A launch with a value that is not finite is left out. */
static void calibration_estimate(const struct nb_calibration_launch *launches, size_t n, int blocks,
                                 struct nb_calibration *out) {
    struct nb_calibration_launch *whole freed = nb_alloc(n + 1, sizeof *whole);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (is_whole(&launches[i])) whole[kept++] = launches[i];
    const size_t cases = count_cases(whole, kept);
    *out = (struct nb_calibration){.n_launches = kept, .n_cases = cases, .blocks = blocks};
    if (kept < cases + 2) {
        out->launch_sd = out->launch_sd_high = out->within_sd = out->between_sd = NAN;
        out->same_sd = out->min_sd = out->preempted = out->overhead_s = out->sample_s = NAN;
        return;
    }
    const double df = (double)(kept - cases);
    out->launch_sd = copies_sd(whole, kept, cases, RATIO);
    out->launch_sd_high = out->launch_sd * sqrt(df / chi_squared_quantile(0.05, df));
    out->min_sd = copies_sd(whole, kept, cases, RATIO_MIN);
    out->same_sd = sqrt(variance_of(whole, kept, cases, NB_REPLICA_SAME, RATIO));
    out->within_sd = fmin(sqrt(within_variance(whole, kept)), out->launch_sd);
    out->between_sd = sqrt(out->launch_sd * out->launch_sd - out->within_sd * out->within_sd);
    keep_residuals(out, whole, kept);
    take_costs(out, whole, kept);
    take_biases(out, whole, kept);
}

/* The spread between launches with so many blocks in each. */
static double calibration_sd(const struct nb_calibration *c, int blocks) {
    const double within = c->within_sd * c->within_sd * (double)c->blocks / blocks;
    return sqrt(c->between_sd * c->between_sd + within);
}

static void calibration_release(struct nb_calibration *c) {
    free(c->residuals);
    *c = (struct nb_calibration){0};
}

/* ---- simulated gates --------------------------------------------------------------------------------------------------- */

/* Fewer launches, or fewer pairs in them, would be at the mercy of what happened in one of them. */
enum { GATE_ARMS = 3, FEWEST_SCREEN = 10, FEWEST_CONFIRM = 12, FEWEST_BLOCKS = 50 };

static void draw_launches(struct nb_gate_launch *launches, size_t n, const struct nb_calibration *c, double scale,
                          double effect, uint64_t *random) {
    for (size_t i = 0; i < n; i++) {
        launches[i] = c->residuals[nb_random_next(random) % c->n_residuals];
        launches[i].ratio = log1p(effect) + scale * launches[i].ratio;
        launches[i].ratio_min = log1p(effect) + scale * launches[i].ratio_min;
        launches[i].control *= scale;
    }
}

/* all: the launches that the plan may come to. */
static enum nb_verdict simulate(const struct nb_gate_evidence *all, const struct nb_gate_design *plan,
                                const struct nb_gate_rule *rule) {
    struct nb_gate_judgement j;
    struct nb_gate_evidence e = *all;
    nb_gate_judge(&e, rule, &j);
    for (int stage = NB_GATE_CONFIRM_1; stage < NB_N_GATE_STAGES && j.verdict == NB_VERDICT_NONE; stage++) {
        e.stage = (enum nb_gate_stage)stage;
        e.n_confirm += (size_t)plan->confirm_launches;
        nb_gate_judge(&e, rule, &j);
    }
    return j.verdict;
}

struct nb_gate_power nb_gate_power(const struct nb_calibration *c, const struct nb_gate_design *plan,
                                   const struct nb_gate_rule *rule, double effect, int draws, uint64_t seed) {
    const size_t n_screen = (size_t)plan->screen_launches, n_confirm = 2 * (size_t)plan->confirm_launches;
    const double scale = c->launch_sd > 0 ? calibration_sd(c, plan->blocks) / c->launch_sd : 1;
    const struct nb_gate_evidence e = {
        .launches = nb_alloc(n_screen + n_confirm, sizeof *e.launches), .n_screen = n_screen, .n_confirming = 1};
    const double share = pow(60.0 / (double)(n_screen + n_confirm), 2);
    int pass[2] = {0}, regression[2] = {0};
    assert(c->n_residuals > 0 && draws > 0);
    if (share < 1) draws = (int)fmax(fmin(draws, 60), share * draws);
    for (int d = 0; d < draws; d++)
        for (int there = 0; there < 2; there++) {
            draw_launches(e.launches, n_screen + n_confirm, c, scale, there ? effect : 0, &seed);
            const enum nb_verdict v = simulate(&e, plan, rule);
            pass[there] += v == NB_VERDICT_PASS || v == NB_VERDICT_IMPROVED;
            regression[there] += v == NB_VERDICT_REGRESSION;
        }
    free(e.launches);
    return (struct nb_gate_power){.pass_same = (double)pass[0] / draws,
                                  .regression_same = (double)regression[0] / draws,
                                  .regression_effect = (double)regression[1] / draws,
                                  .pass_effect = (double)pass[1] / draws};
}

/* ---- by normal theory ------------------------------------------------------------------------------------------------------ */

double nb_gate_smallest_effect(const struct nb_calibration *c, const struct nb_gate_design *plan,
                               const struct nb_gate_rule *rule) {
    const struct nb_gate_evidence e = {.n_screen = (size_t)plan->screen_launches,
                                       .n_planned = 2 * (size_t)plan->confirm_launches};
    return nb_gate_smallest(&e, rule, calibration_sd(c, plan->blocks));
}

/* Seconds of one case. */
static double seconds_of(const struct nb_calibration *c, const struct nb_gate_design *plan, bool confirmed) {
    const double launch = c->overhead_s + GATE_ARMS * plan->blocks * c->sample_s;
    return launch * (plan->screen_launches + (confirmed ? 2 * plan->confirm_launches : 0));
}

/* Does screening keep the effect, and clear a copy in so many of gates as are wanted? */
static bool screens(const struct nb_gate_rule *rule, double sd, double wanted, int launches) {
    const double z =
        nb_normal_quantile(1 - rule->pass_level * NB_GATE_CLEARING_SHARE) + nb_normal_quantile(NB_WANTED_POWER);
    return z * sd / sqrt(launches) <= log1p(rule->pass_margin) &&
           nb_gate_kept_from(rule, sd, (size_t)launches) <= wanted;
}

/* False: more launches than are allowed. */
static bool propose(const struct nb_calibration *c, const struct nb_gate_rule *rule, double effect, int blocks,
                    struct nb_gate_design *plan) {
    const double sd = calibration_sd(c, blocks), wanted = log1p(effect);
    *plan = (struct nb_gate_design){FEWEST_SCREEN, FEWEST_CONFIRM, blocks};
    while (plan->screen_launches <= NB_MOST_LAUNCHES && !screens(rule, sd, wanted, plan->screen_launches))
        plan->screen_launches++;
    while (plan->confirm_launches <= NB_MOST_LAUNCHES &&
           nb_gate_found_from(rule, sd, 2 * (size_t)plan->confirm_launches, 1) > wanted)
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
        const double seconds = seconds_of(&c, &plan, true);
        if (seconds >= least) continue;
        least = seconds;
        out->plan = plan;
    }
    if (!isfinite(least)) return;
    out->is_found = strengthen(&c, rule, effect, draws, out);
    out->seconds_same = seconds_of(&c, &out->plan, false);
    out->seconds_effect = seconds_of(&c, &out->plan, true);
}

const char *nb_gate_hopeless(const struct nb_calibration *c, const struct nb_gate_design *plan,
                             const struct nb_gate_rule *rule) {
    static char text[200];
    const double smallest = nb_gate_smallest_effect(c, plan, rule);
    text[0] = '\0';
    if (!isfinite(c->launch_sd))
        snprintf(text, sizeof text, "too few launches were measured to say");
    else if (smallest > rule->pass_margin)
        snprintf(text, sizeof text, "the smallest effect it would find is %.1f%%, PASS is promised below %.3g%%",
                 100 * smallest, 100 * rule->pass_margin);
    else if (c->preempted > rule->most_preempted)
        snprintf(text, sizeof text, "%.0f%% of the pairs were interrupted or moved to another CPU; %.0f%% are the most",
                 100 * c->preempted, 100 * rule->most_preempted);
    for (int t = 0; t < NB_N_COPIES && !text[0]; t++)
        if (fabs(c->bias[t].value) > log1p(rule->fail_margin))
            snprintf(text, sizeof text, "a byte copy differs by %+.1f%%", 100 * expm1(c->bias[t].value));
    return text[0] ? text : NULL;
}

/* ---- launches -------------------------------------------------------------------------------------------------------- */

enum { ARMS = 1 + NB_N_REPLICAS };

static bool is_of(const struct nb_calibration_group *group, const struct nb_case *c) {
    const struct nb_case *g = group->c;
    return g->op == c->op && g->pass == c->pass && g->dtype == c->dtype && strcmp(g->shape.text, c->shape.text) == 0;
}

static struct nb_calibration_group *group_of(struct nb_calibration_run *r, const struct nb_case *c) {
    for (size_t i = 0; i < r->n_groups; i++)
        if (is_of(&r->groups[i], c)) return &r->groups[i];
    struct nb_calibration_group *added = NB_PUSH(r->groups, r->n_groups);
    *added = (struct nb_calibration_group){.c = c};
    return added;
}

/* Spread evenly over the group's cases, which are in the order of the registry: neighbours are widths of one kernel. */
static void thin(struct nb_calibration_group *group, int most) {
    const size_t keep = group->n_all < (size_t)most ? group->n_all : (size_t)most;
    for (size_t i = 0; i < keep; i++) group->cases[i] = group->cases[i * group->n_all / keep];
    group->n_cases = keep;
}

static void make_groups(struct nb_calibration_run *r) {
    for (size_t i = 0; i < r->g->n_cases; i++) {
        struct nb_calibration_group *group = group_of(r, &r->g->cases[i].c);
        *NB_PUSH(group->cases, group->n_all) = i;
    }
    for (size_t i = 0; i < r->n_groups; i++) thin(&r->groups[i], r->cases_per_group);
}

/* Arms: baseline, then the replicas. */
static struct nb_calibration_launch read_launch(const struct nb_gate_answer *answer) {
    struct nb_calibration_launch l = {.sample_s = answer->wall_s / (ARMS * (double)answer->n_blocks)};
    memcpy(l.replicas, &answer->launch[1], sizeof l.replicas);
    return l;
}

static int launch_case(struct nb_calibration_run *r, struct nb_calibration_group *group, size_t which, int number) {
    const struct nb_gate_case *c = &r->g->cases[group->cases[which]];
    const double start = nb_now_s();
    struct nb_gate_answer answer;
    struct nb_gate_request q = nb_gate_request_of(r->g, c, number);
    q.keys[q.n_arms++] = c->arm_keys[NB_BUILD_BASELINE];
    const int result = nb_gate_launch(r->g, c, NB_GATE_SCREEN, &q, &answer);
    if (result != 0) return result;
    if (answer.status != NB_OK) {
        snprintf(group->refused, sizeof group->refused, "%.100s: %s %.100s", c->key, nb_status_name(answer.status),
                 answer.reason);
        return 0;
    }
    struct nb_calibration_launch read = read_launch(&answer);
    read.case_index = (int)which;
    read.overhead_s = nb_now_s() - start - answer.wall_s;
    *NB_PUSH(group->launches, group->n_launches) = read;
    return 0;
}

static int rounds(struct nb_calibration_run *r) {
    size_t total = 0, done = 0;
    for (size_t i = 0; i < r->n_groups; i++) total += r->groups[i].n_cases;
    for (int l = 0; l < r->launches; l++)
        for (size_t i = 0; i < r->n_groups; i++)
            for (size_t k = 0; k < r->groups[i].n_cases; k++) {
                if (nb_gate_is_over(r->g)) return 0;
                nb_progress((double)done++, (double)total * r->launches, nb_now_s() - r->g->started_s,
                            r->groups[i].c->variant);
                const int result = r->groups[i].refused[0] ? nb_interrupted() : launch_case(r, &r->groups[i], k, l);
                if (result != 0) return result;
            }
    return 0;
}

/* That of the copies, which the judge of a run would take, too. */
static void take_one_state(struct nb_calibration_group *group) {
    struct nb_gate_launch *copies freed = nb_alloc(group->n_launches + 1, sizeof *copies);
    for (size_t i = 0; i < group->n_launches; i++) copies[i] = group->launches[i].replicas[NB_REPLICA_COPY];
    const enum nb_state state = nb_gate_state_of(copies, group->n_launches);
    for (size_t i = 0; i < group->n_launches; i++)
        for (int t = 0; t < NB_N_REPLICAS; t++)
            group->launches[i].replicas[t] = nb_gate_launch_in(&group->launches[i].replicas[t], state);
}

int nb_calibration_run(struct nb_calibration_run *r) {
    assert(r && r->g && r->launches > 0 && r->cases_per_group > 0);
    make_groups(r);
    nb_gate_begin(r->g);
    const int result = rounds(r);
    for (size_t i = 0; i < r->n_groups; i++) take_one_state(&r->groups[i]);
    for (size_t i = 0; i < r->n_groups; i++)
        calibration_estimate(r->groups[i].launches, r->groups[i].n_launches, r->g->plan.blocks, &r->groups[i].noise);
    nb_gate_end(r->g);
    return result;
}

void nb_calibration_run_release(struct nb_calibration_run *r) {
    for (size_t i = 0; i < r->n_groups; i++) {
        free(r->groups[i].cases);
        free(r->groups[i].launches);
        calibration_release(&r->groups[i].noise);
    }
    free(r->groups);
    r->groups = NULL;
    r->n_groups = 0;
}
