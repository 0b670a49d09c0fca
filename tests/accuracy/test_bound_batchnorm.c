// SPDX-License-Identifier: Apache-2.0
/* The bound of BatchNorm: its inference knows whether a kernel subtracts the mean or folds it into a constant; layouts. */
#include <criterion/criterion.h>
#include <math.h>

#include "src/accuracy/accuracy.h"
#include "src/core/dtype.h"
#include "tests/support/softkernel.h"

/* Inference in f32, by itself or folded into a x + c. */
static float infer(const struct problem *p, double x, int64_t channel, bool folded) {
    const float scale = 1 / sqrtf(p->in.running_var[channel] + (float)p->c.eps), mean = p->in.running_mean[channel];
    const float gamma = p->in.gamma_f32[channel], beta = p->in.beta_f32[channel];
    if (!folded) return ((float)x - mean) * scale * gamma + beta;
    const float a = gamma * scale, c = beta - mean * a;
    return a * (float)x + c;
}

static double worst_of_inference(uint32_t layout, bool declared, bool folded) {
    struct problem p;
    struct nb_oracle o;
    struct nb_bound b;
    double y[64], tolerance[64], worst = 0;
    problem_init_batchnorm(&p, layout, NB_F32, 2, 8, 32);
    problem_fill_normal(&p, 1000, 1, 8);
    for (int64_t i = 0; i < 8; i++) p.in.running_mean[i] = (float)(1000 + 0.1 * (double)i);
    p.c.mode = NB_INFERENCE;
    p.c.folded = declared;
    p.c.formula.affine = NB_AFFINE_GAMMA_BETA;
    cr_assert_eq(nb_oracle_init(&o, &p.c, &p.in), 0);
    nb_bound_init(&b, &p.c, &o, 0);
    for (int64_t r = 0; r < p.in.rows; r++) {
        nb_oracle_row(&o, r, y);
        cr_assert_eq(nb_bound_row(&b, r, y, tolerance), NB_LOSS_NONE);
        for (int64_t i = 0; i < p.in.cols; i++) {
            int64_t channel = layout == NB_NHWC ? i : r % 8;
            double got = infer(&p, nb_get(p.in.x, r * p.in.cols + i, NB_F32), channel, folded);
            worst = fmax(worst, fabs(got - y[i]) / tolerance[i]);
        }
    }
    nb_bound_release(&b);
    nb_oracle_release(&o);
    problem_free(&p);
    return worst;
}

Test(bound, tells_a_folded_batchnorm_from_one_that_subtracts_the_mean) {
    for (uint32_t layout = NB_NCHW; layout <= NB_NHWC; layout++) {
        cr_expect_leq(worst_of_inference(layout, false, false), 1);
        cr_expect_leq(worst_of_inference(layout, true, true), 1);
        cr_expect_gt(worst_of_inference(layout, true, true), 0.1);
        cr_expect_gt(worst_of_inference(layout, false, true), 1, "declared as subtracting, but folded");
    }
}

/* ---- layouts ----------------------------------------------------------------------------------------------------------- */

enum { N = 2, CHANNELS = 5, HW = 12 };

/* Channels of sizes of their own; the squares of the last overflow. */
static double value_of(int n, int channel, int i) {
    const double v = sin(1 + 7 * n + 3 * channel + i) * (channel + 1) + channel;
    return channel == CHANNELS - 1 ? 1e30 * v : v;
}

static int64_t place_of(uint32_t layout, int n, int channel, int i) {
    return layout == NB_NCHW ? (n * CHANNELS + channel) * HW + i : (n * HW + i) * CHANNELS + channel;
}

static void bound_of_layout(uint32_t layout, double *tolerance) {
    struct problem p;
    struct nb_oracle o;
    struct nb_bound b;
    double y[HW];
    problem_init_batchnorm(&p, layout, NB_F32, N, CHANNELS, HW);
    problem_fill_normal(&p, 0, 1, 9);
    for (int n = 0; n < N; n++)
        for (int c = 0; c < CHANNELS; c++)
            for (int i = 0; i < HW; i++) problem_set(&p, place_of(layout, n, c, i), value_of(n, c, i));
    p.c.formula.affine = NB_AFFINE_GAMMA_BETA;
    cr_assert_eq(nb_oracle_init(&o, &p.c, &p.in), 0);
    nb_bound_init(&b, &p.c, &o, 10);
    for (int64_t r = 0; r < p.in.rows; r++) {
        nb_oracle_row(&o, r, y);
        nb_bound_row(&b, r, y, tolerance + r * p.in.cols);
    }
    nb_bound_release(&b);
    nb_oracle_release(&o);
    problem_free(&p);
}

Test(bound, is_the_same_for_a_batchnorm_in_either_layout) {
    double nchw[N * CHANNELS * HW], nhwc[N * CHANNELS * HW];
    bound_of_layout(NB_NCHW, nchw);
    bound_of_layout(NB_NHWC, nhwc);
    for (int n = 0; n < N; n++)
        for (int c = 0; c < CHANNELS; c++)
            for (int i = 0; i < HW; i++) {
                const double a = nchw[place_of(NB_NCHW, n, c, i)], b = nhwc[place_of(NB_NHWC, n, c, i)];
                cr_expect_eq(isinf(a), c == CHANNELS - 1, "channel %d", c);
                cr_expect(a == b || fabs(a - b) <= 1e-9 * a, "channel %d, place %d: %g, %g", c, i, a, b);
            }
}
