// SPDX-License-Identifier: Apache-2.0
/* How far kernels can be taken: frontiers whose place is known, from theory or because they were planted. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/lab/stress/frontier.c"
#include "tests/support/files.h"
#include "tests/support/trials.h"

static struct nb_frontier find_frontier(struct nb_trial *t, enum nb_frontier_of of) {
    struct prober p released_by(prober_release);
    struct nb_frontier f;
    cr_assert(prober_init(&p, t) == 0 && find(&p, of, &f) == 0, "%s", t->reason);
    return f;
}

/* The largest |x| over the two seeds that the search looks at, as stored. */
static double largest_x(struct nb_trial *t, enum nb_family family, double parameter) {
    double largest = 0;
    for (uint64_t s = 0; s < 2; s++) {
        struct nb_draws d released_by(nb_draws_release);
        nb_draws_init(&d, t, t->c.seed + s);
        nb_trial_load(t, &d, family, parameter);
        for (int64_t i = 0; i < d.n; i++) largest = fmax(largest, fabs(nb_get(t->in.x, i, t->in.dtype)));
    }
    return largest;
}

Test(frontier, f16_squares_overflow_at_256) {
    struct nb_trial t released_by(nb_trial_release);
    if (!start_trial(&t, "rmsnorm_lowp_scalar_f16/shape:1x1/eps:1e-6", NULL)) return;
    const struct nb_frontier f = find_frontier(&t, NB_SCALE_MAX);
    cr_assert(isfinite(f.good) && isfinite(f.bad));
    cr_expect_leq(largest_x(&t, NB_FAMILY_SCALE, f.good), 255.875); /* 255.875^2 = 65472 */
    cr_expect_geq(largest_x(&t, NB_FAMILY_SCALE, f.bad), 256);
    cr_expect(fabs(f.good / f.predicted.at - 1) < 0x1p-9, "%g, predicted %g", f.good, f.predicted.at);
}

Test(frontier, without_eps_f16_statistics_vanish_with_small_rows_and_f32_statistics_do_not) {
    struct nb_trial t released_by(nb_trial_release), wide released_by(nb_trial_release) = {0};
    if (!start_trial(&t, "rmsnorm_lowp_scalar_f16/shape:1x64/eps:0", NULL)) return;
    const struct nb_frontier low = find_frontier(&t, NB_SCALE_MIN);
    cr_assert(isfinite(low.good) && isfinite(low.bad));
    cr_expect(low.good > 0x1p-12 && low.good < 0x1p-8, "%g", low.good); /* x^2 is 0 at 2^-12.5, and subnormal at 2^-7 */
    cr_expect(low.good / low.predicted.at > 0.5 && low.good / low.predicted.at < 2, "%g", low.predicted.at);
    if (!start_trial(&wide, "rmsnorm_serial_scalar_f16/shape:1x64/eps:0", NULL)) return;
    const struct nb_frontier single = find_frontier(&wide, NB_SCALE_MIN);
    cr_expect(isnan(single.bad), "wrong at %g", single.bad);
    cr_expect(single.predicted.at < 0x1p-24, "%g", single.predicted.at); /* smaller than any f16 */
}

/* ---- rho ---- */

Test(frontier, one_pass_loses_its_digits_before_the_root_of_1_over_u) {
    struct nb_trial t released_by(nb_trial_release);
    if (!start_trial(&t, "layernorm_onepass_scalar_f32/shape:2x1024/eps:1e-6", NULL)) return;
    const struct nb_frontier f = find_frontier(&t, NB_RHO_MAX);
    const double ratio = f.good / f.predicted.at;
    cr_assert(isfinite(f.good) && isfinite(f.bad));
    cr_expect(f.good > 1 && f.good < 4096, "%g", f.good); /* u^-1/2 */
    cr_expect(ratio > 0.25 && ratio < 4, "%g, predicted %g", f.good, f.predicted.at);
}

/* ---- planted ---- */

Test(frontier, a_planted_breakdown_is_found_to_one_ulp_and_what_is_right_again_beyond_is_named) {
    struct nb_trial t released_by(nb_trial_release);
    cr_assert(start_trial(&t, "planted:planted_f32/shape:1x96", "planted"));
    const struct nb_frontier high = find_frontier(&t, NB_SCALE_MAX);
    cr_assert(isfinite(high.good) && isfinite(high.bad));
    cr_expect_eq(high.bad, (double)nextafterf((float)high.good, INFINITY));
    cr_expect_leq(largest_x(&t, NB_FAMILY_SCALE, high.good), 1000);
    cr_expect_gt(largest_x(&t, NB_FAMILY_SCALE, high.bad), 1000);
    cr_expect(!high.monotone);
    cr_expect_geq(largest_x(&t, NB_FAMILY_SCALE, high.good_beyond), 1e6);
    const struct nb_frontier low = find_frontier(&t, NB_SCALE_MIN);
    cr_assert(isfinite(low.good) && isfinite(low.bad));
    cr_expect_eq(low.bad, (double)nextafterf((float)low.good, 0));
}

Test(frontier, a_kernel_that_fails_gives_a_reason) {
    struct nb_trial t released_by(nb_trial_release);
    cr_assert(start_trial(&t, "error:bad_error_f32/shape:1x96", "error"));
    cr_expect_null(nb_frontiers(&t, NULL));
    cr_expect_not_null(t.reason);
}

/* ---- rows and report ---- */

static void expect_same_rows(const char *key, enum nb_family family, double parameter, const char *data) {
    struct nb_trial t released_by(nb_trial_release);
    struct nb_draws d released_by(nb_draws_release) = {0};
    struct nb_inputs in released_by(nb_inputs_release) = {0};
    if (!start_trial(&t, key, NULL)) return;
    struct nb_case c = t.c;
    c.seed = 7;
    snprintf(c.data, sizeof c.data, "%s", data);
    cr_assert_eq(nb_inputs_init(&in, &c), 0);
    nb_draws_init(&d, &t, c.seed);
    nb_trial_load(&t, &d, family, parameter);
    const size_t bytes = (size_t)(in.rows * in.cols) * nb_formats[in.dtype].bytes;
    cr_expect_arr_eq(t.in.x, in.x, bytes, "%s %s", key, data);
    if (in.residual) cr_expect_arr_eq(t.in.residual, in.residual, bytes, "%s %s residual", key, data);
    cr_expect_arr_eq(t.in.gamma_f32, in.gamma_f32, (size_t)in.n_params * sizeof(float), "%s gamma", key);
    cr_expect_arr_eq(t.in.gamma_x, in.gamma_x, (size_t)in.n_params * nb_formats[in.dtype].bytes, "%s gamma", key);
}

Test(frontier, rows_are_those_that_replay_makes_of_the_same_name) {
    expect_same_rows("rmsnorm_serial_scalar_f32/shape:3x65", NB_FAMILY_SCALE, 1.8e19, "scale(1.8e19)");
    expect_same_rows("rmsnorm_serial_scalar_f16/shape:3x65", NB_FAMILY_SCALE, 60000, "scale(60000)"); /* cut off */
    expect_same_rows("layernorm_twopass_scalar_bf16/shape:3x65", NB_FAMILY_OFFSET, 96, "offset(96)");
    expect_same_rows("add_rmsnorm_twopass_scalar_f32/shape:2x33", NB_FAMILY_OFFSET, 0x1.123456p5,
                     "offset(0x1.123456p5)");
}

Test(frontier, the_report_has_keys_that_parse) {
    struct nb_trial t released_by(nb_trial_release);
    cr_assert(start_trial(&t, "planted:planted_f32/shape:1x96", "planted"));
    cJSON *all = kept_json(nb_frontiers(&t, NULL)), *f;
    int n_found = 0;
    cr_assert_not_null(all);
    cr_expect_eq(cJSON_GetArraySize(all), NB_N_FRONTIERS);
    cJSON_ArrayForEach(f, all) {
        const char *key = nb_json_get_text(f, "bad_key");
        struct nb_case c;
        if (!key) continue;
        n_found++;
        cr_assert_eq(nb_case_parse(&c, key), 0, "%s", key);
        char want[64];
        snprintf(want, sizeof want, "scale(%.9g)", nb_json_get_number(f, "bad"));
        double parameter = strtod(c.data + 6, NULL);
        cr_expect_eq(parameter, nb_json_get_number(f, "bad"), "%s, %s", c.data, want);
        cr_expect_not_null(strstr(nb_json_get_text(f, "replay"), "--plugin"));
    }
    cr_expect_eq(n_found, 2); /* a percent off above, zeros below */
}
