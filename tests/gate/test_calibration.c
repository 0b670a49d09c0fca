// SPDX-License-Identifier: Apache-2.0
/* Spreads, biases and plans that are recovered from simulated launches. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "src/core/log.h"
#include "src/gate/calibration.c"
#include "tests/support/files.h"
#include "tests/support/numerics.h"

enum { BLOCKS = 100 };

struct world {
    double between, within; /* standard deviations of ln ratio: launch effect; error of the median of BLOCKS pairs */
    double bias[NB_N_REPLICAS];
    int cases;
    double case_offset; /* of every next case: none of the spread */
};

static struct nb_calibration_launch launch_of(const struct world *w, int case_index, uint64_t *state) {
    struct nb_calibration_launch l = {.case_index = case_index, .overhead_s = 0.02, .sample_s = 0.0003};
    for (int t = 0; t < NB_N_REPLICAS; t++) {
        const double level = w->bias[t] + w->case_offset * case_index + w->between * random_normal(state);
        /* A half has half the pairs: its median errs by sqrt(2) more, and the whole's is the mean of both. */
        const double a = sqrt(2) * w->within * random_normal(state), b = sqrt(2) * w->within * random_normal(state);
        l.replicas[t] = (struct nb_gate_launch){.ratio = level + (a + b) / 2,
                                                .ratio_min = level + 3 * w->within * random_normal(state),
                                                .halves = a - b,
                                                .order_effect = 0.002 + 0.001 * random_normal(state),
                                                .preempted = 0.1};
    }
    return l;
}

static struct nb_calibration calibrate(const struct world *w, size_t n, uint64_t seed) {
    struct nb_calibration_launch *launches freed = nb_alloc(n, sizeof *launches);
    struct nb_calibration c;
    for (size_t i = 0; i < n; i++) launches[i] = launch_of(w, (int)i % (w->cases ? w->cases : 1), &seed);
    calibration_estimate(launches, n, BLOCKS, &c);
    return c;
}

/* ---- estimates ---------------------------------------------------------------------------------------------------------------- */

Test(calibration, planted_spreads_are_recovered) {
    const struct world worlds[] = {
        {.between = 0.005, .within = 0.002}, {.between = 0, .within = 0.01}, {.between = 0.003}};
    for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        const struct world *w = &worlds[i];
        struct nb_calibration c released_by(calibration_release) = calibrate(w, 500, 1 + i);
        const double sd = hypot(w->between, w->within);
        cr_expect(ieee_ulp_eq(dbl, c.launch_sd, hypot(c.between_sd, c.within_sd), 8));
        cr_expect(epsilon_eq(dbl, c.launch_sd, sd, 0.07 * sd), "%g for %g", c.launch_sd, sd);
        cr_expect(epsilon_eq(dbl, c.within_sd, w->within, 0.07 * sd), "%g for %g", c.within_sd, w->within);
        cr_expect(epsilon_eq(dbl, c.same_sd, sd, 0.07 * sd), "%g for %g", c.same_sd, sd);
        cr_expect(epsilon_eq(dbl, c.min_sd, hypot(w->between, 3 * w->within), 0.07 * hypot(w->between, 3 * w->within)));
        cr_expect(epsilon_eq(dbl, c.preempted, 0.1, 1e-9));
    }
}

Test(calibration, upper_bound_of_the_spread_keeps_its_level) {
    const struct world w = {.between = 0.004, .within = 0.002};
    const double sd = hypot(w.between, w.within);
    int above = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct nb_calibration c released_by(calibration_release) = calibrate(&w, 20, 1000 * seed);
        above += c.launch_sd_high >= sd;
    }
    /* 95 % by design for one copy; two that are independent here make it safer. */
    cr_expect(ge(int, above, 950), "%d of 1000", above);
}

Test(calibration, differences_between_cases_and_copies_are_no_spread) {
    const struct world w = {.between = 0.002, .bias = {0.01, -0.01, 0}, .cases = 4, .case_offset = 0.05};
    struct nb_calibration c released_by(calibration_release) = calibrate(&w, 400, 5);
    cr_expect(eq(int, (int)c.n_cases, 4));
    cr_expect(epsilon_eq(dbl, c.launch_sd, 0.002, 0.0003), "%g", c.launch_sd);
}

Test(calibration, biases_and_order_effects_are_recovered_with_intervals) {
    const struct world w = {.between = 0.004, .bias = {0.01, -0.02, 0}};
    struct nb_calibration c released_by(calibration_release) = calibrate(&w, 400, 6);
    for (int t = 0; t < NB_N_REPLICAS; t++) {
        cr_expect(epsilon_eq(dbl, c.bias[t].value, w.bias[t], 0.001), "%s: %g", nb_replica_names[t], c.bias[t].value);
        cr_expect(c.bias[t].low < c.bias[t].value && c.bias[t].value < c.bias[t].high);
    }
    cr_expect(epsilon_eq(dbl, c.order_effect.value, 0.002, 0.0003));
}

Test(calibration, too_few_or_broken_launches_give_no_figures) {
    const struct world w = {.between = 0.004};
    uint64_t seed = 7;
    struct nb_calibration_launch launches[5];
    struct nb_calibration c;
    for (int i = 0; i < 5; i++) launches[i] = launch_of(&w, 0, &seed);
    for (int i = 0; i < 3; i++) launches[i].replicas[NB_REPLICA_COPY].ratio = NAN;
    calibration_estimate(launches, 5, BLOCKS, &c);
    cr_expect(eq(int, (int)c.n_launches, 2));
    cr_expect(isnan(c.launch_sd) && isnan(c.within_sd) && isnan(c.overhead_s) && c.n_residuals == 0);
    cr_expect(nb_gate_hopeless(&c, &(struct nb_gate_design){12, 24, 100}, &nb_gate_rule_default) != NULL);
    struct nb_recommendation none;
    nb_gate_recommend(&c, &nb_gate_rule_default, 0.03, 50, &none);
    cr_expect(not(none.is_found));
    calibration_release(&c);
    calibration_estimate(launches, 0, BLOCKS, &c);
    cr_expect(isnan(c.launch_sd) && c.n_launches == 0);
}

/* ---- plans ---------------------------------------------------------------------------------------------------------------------- */

static const struct nb_gate_design usual = {12, 24, BLOCKS};

Test(calibration, the_smallest_effect_is_found_in_simulated_gates) {
    const struct world w = {.between = 0.003, .within = 0.001};
    struct nb_calibration c released_by(calibration_release) = calibrate(&w, 400, 8);
    const double smallest = nb_gate_smallest_effect(&c, &usual, &nb_gate_rule_default);
    cr_expect(lt(dbl, smallest, 0.01));
    struct nb_gate_power power = nb_gate_power(&c, &usual, &nb_gate_rule_default, smallest + 0.001, 200, 1);
    cr_expect(ge(dbl, power.regression_effect, 0.93), "%g", power.regression_effect);
    cr_expect(eq(dbl, power.regression_same, 0));
    cr_expect(ge(dbl, power.pass_same, 0.98));
    power = nb_gate_power(&c, &usual, &nb_gate_rule_default, nb_gate_rule_default.fail_margin, 200, 1);
    cr_expect(le(dbl, power.regression_effect, 0.03), "at the margin itself: %g", power.regression_effect);
}

Test(calibration, noise_takes_launches_or_pairs_where_it_is) {
    const struct world between = {.between = 0.006, .within = 0.0005}, within = {.between = 0.00025, .within = 0.006};
    struct nb_calibration many_launches released_by(calibration_release) = calibrate(&between, 200, 9),
                                        many_pairs released_by(calibration_release) = calibrate(&within, 200, 10);
    struct nb_recommendation a, b;
    nb_gate_recommend(&many_launches, &nb_gate_rule_default, 0.01, 100, &a);
    nb_gate_recommend(&many_pairs, &nb_gate_rule_default, 0.01, 100, &b);
    cr_assert(a.is_found && b.is_found);
    cr_expect(gt(int, b.plan.blocks, a.plan.blocks));
    cr_expect(gt(int, a.plan.confirm_launches, b.plan.confirm_launches));
    cr_expect(a.power.regression_effect >= NB_WANTED_POWER && b.power.pass_same >= NB_WANTED_POWER);
    cr_expect(gt(dbl, a.seconds_effect, a.seconds_same));
}

Test(calibration, hopeless_noise_is_said_to_be) {
    const struct world loud = {.between = 0.10}, fine = {.between = 0.002},
                       off = {.between = 0.002, .bias = {0, 0.02, 0}};
    struct nb_calibration a released_by(calibration_release) = calibrate(&loud, 60, 11),
                            b released_by(calibration_release) = calibrate(&fine, 60, 12),
                            c released_by(calibration_release) = calibrate(&off, 60, 13);
    struct nb_recommendation none;
    cr_expect(strstr(nb_gate_hopeless(&a, &usual, &nb_gate_rule_default), "smallest effect") != NULL);
    cr_expect(eq(ptr, (void *)(uintptr_t)nb_gate_hopeless(&b, &usual, &nb_gate_rule_default), NULL));
    cr_expect(strstr(nb_gate_hopeless(&c, &usual, &nb_gate_rule_default), "a byte copy differs by +2.0%") != NULL);
    nb_gate_recommend(&a, &nb_gate_rule_default, 0.03, 50, &none);
    cr_expect(not(none.is_found));
}

Test(calibration, a_line_of_samples_is_read) {
    /* The control is 1 % slower; in the second half of each four blocks 3 %; its order effect is nothing. */
    static const char line[] =
        "{\"arms\":[{\"sample_ns\":[100,100,100,100],\"position\":[0,1,0,1],\"preempted\":[]},"
        "{\"sample_ns\":[101,101,103,103],\"position\":[1,0,1,0],\"preempted\":[2]},"
        "{\"sample_ns\":[100,100,100,100],\"position\":[2,2,2,2],\"preempted\":[]},"
        "{\"sample_ns\":[90,100,100,null],\"position\":[3,3,3,3],\"preempted\":[]}],\"noise\":{\"wall_s\":1.6}}";
    struct nb_gate_answer answer;
    cJSON *json = kept_json(cJSON_Parse(line));
    cr_assert(eq(int, nb_gate_launch_read(json, ARMS, 0, NULL, &answer), 0));
    const struct nb_calibration_launch l = read_launch(&answer);
    cr_expect(epsilon_eq(dbl, l.replicas[NB_REPLICA_CONTROL].halves, log(1.01 / 1.03), 1e-12));
    cr_expect(epsilon_eq(dbl, l.replicas[NB_REPLICA_CONTROL].order_effect, 0, 1e-12));
    cr_expect(epsilon_eq(dbl, l.replicas[NB_REPLICA_CONTROL].preempted, 0.25, 1e-12));
    cr_expect(epsilon_eq(dbl, l.replicas[NB_REPLICA_COPY].ratio, 0, 1e-12));
    cr_expect(epsilon_eq(dbl, l.replicas[NB_REPLICA_SAME].ratio_min, log(0.9), 1e-12));
    cr_expect(epsilon_eq(dbl, l.sample_s, 0.1, 1e-12));
    cJSON_DeleteItemFromArray(cJSON_GetObjectItem(json, "arms"), 3);
    cr_expect(eq(int, nb_gate_launch_read(json, ARMS, 0, NULL, &answer), -1));
}
