// SPDX-License-Identifier: Apache-2.0
/* The bound of gradients where it is not about sums: DyT's slope, numbers that are flushed, and losses that are predicted. */
#include <criterion/criterion.h>
#include <math.h>

#include "src/accuracy/gradient_bound.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "tests/support/softgradient.h"

/* ---- DyT, and what is flushed ---------------------------------------------------------------------------------------- */

/* Step by step in f32, or every result in a narrow dtype too: t = tanh rounded, 1 - t t, products from the left. */
struct dyt_step {
    float tanh, dx, dalpha;
};
static float op(const struct problem *b, float v) {
    return b->c.stats_dtype == NB_STATS_X ? (float)nb_round_to((double)v, b->in.dtype) : v;
}
static struct dyt_step dyt_step(const struct problem *b, int64_t i) {
    const struct nb_inputs *in = &b->in;
    const float x = (float)nb_get(in->x, i, in->dtype), dy = (float)nb_get(in->dy, i, in->dtype),
                alpha = op(b, (float)b->c.alpha);
    const float w = 1 + in->gamma_f32[i % in->cols], t = op(b, (float)tanh((double)op(b, alpha * x)));
    const float slope = op(b, 1 - op(b, t * t)), g = op(b, dy * (b->c.formula.weight_offset ? op(b, w) : 1));
    return (struct dyt_step){t, op(b, op(b, g * alpha) * slope), g * x * slope};
}

/* Slopes, products and sums at both ends of the range, in every dtype. */
Test(gradient_bound_ends, holds_for_dyt_of_any_size) {
    uint64_t r = 32;
    int n = 0;
    for (int trial = 0; trial < 120; trial++) {
        struct problem b released_by(problem_free);
        struct nb_gradient_bound bound released_by(nb_gradient_bound_release);
        double dx[60], tolerance[60];
        backward_init(&b, NB_OP_DYT, (enum nb_dtype)(trial % NB_N_DTYPES), 1, 60);
        const uint32_t weighted = trial % 2;
        b.c.alpha = trial == 1 ? 0 : random_normal(&r) * exp(3 * random_normal(&r));
        b.c.stats_dtype = trial % 4 == 0 ? NB_STATS_X : NB_STATS_F32;
        const double mean = random_normal(&r), sd = exp(10 * random_normal(&r));
        backward_fill_normal(&b, mean, sd, nb_random_next(&r));
        b.c.formula.affine = weighted ? NB_AFFINE_GAMMA : NB_AFFINE_NONE;
        b.c.formula.weight_offset = weighted;
        for (int64_t i = 0; i < 60 && trial % 5 == 0; i++) backward_set_dy(&b, i, 1e37 * random_normal(&r));
        struct nb_gradient g released_by(nb_gradient_release) = backward_gradient(&b);
        nb_gradient_bound_init(&bound, &b.c, &g, NULL, 60, 1, trial % 7 == 0);
        nb_gradient_row(&g, 0, dx);
        nb_gradient_bound_row(&bound, 0, dx, tolerance);
        for (int64_t i = 0; i < 60; i++) {
            if (!isfinite(dx[i]) || isinf(tolerance[i])) continue;
            const double got = nb_round_to((double)dyt_step(&b, i).dx, b.in.dtype);
            cr_expect_leq(bound_ratio(got, dx[i], tolerance[i]), 1, "trial %d, alpha %g: %g, not %g", trial, b.c.alpha,
                          got, dx[i]);
            n++;
        }
        for (int64_t i = 0; weighted && i < 60; i++) {
            const float dgamma = op(&b, dyt_step(&b, i).tanh * (float)nb_get(b.in.dy, i, b.in.dtype));
            const double allowed = nb_gradient_bound_parameter(&bound, NB_DGAMMA, i);
            cr_expect_leq(bound_ratio(dgamma, g.dgamma[i], allowed), 1, "trial %d, alpha %g: dgamma %g, not %g", trial,
                          b.c.alpha, (double)dgamma, g.dgamma[i]);
        }
    }
    cr_expect_gt(n, 1000);
}

Test(gradient_bound_ends, holds_for_dyt_and_its_alpha) {
    struct problem b released_by(problem_free);
    struct nb_gradient_bound bound released_by(nb_gradient_bound_release);
    double dx[300], tolerance[300], worst = 0;
    float dgamma[300] = {0}, dalpha = 0;
    backward_init(&b, NB_OP_DYT, NB_F32, 8, 300);
    b.c.alpha = 0.7;
    b.c.formula.affine = NB_AFFINE_GAMMA;
    b.c.formula.weight_offset = 1;
    backward_fill_normal(&b, 0, 4, 8);
    struct nb_gradient g released_by(nb_gradient_release) = backward_gradient(&b);
    nb_gradient_bound_init(&bound, &b.c, &g, NULL, 300, 8, false);
    for (int64_t row = 0; row < 8; row++) {
        float of_row = 0;
        nb_gradient_row(&g, row, dx);
        cr_assert_eq(nb_gradient_bound_row(&bound, row, dx, tolerance), NB_LOSS_NONE);
        for (int64_t i = 0; i < 300; i++) {
            const struct dyt_step s = dyt_step(&b, row * 300 + i);
            worst = fmax(worst, bound_ratio(s.dx, dx[i], tolerance[i]));
            cr_expect_gt(bound_ratio(s.dx * (1 + 1e-4f), dx[i], tolerance[i]) + (fabs(s.tanh) > 0.5f), 1);
            dgamma[i] += s.tanh * ((const float *)b.in.dy)[row * 300 + i];
            of_row += s.dalpha;
        }
        dalpha += of_row;
    }
    cr_expect(worst <= 1 && worst > 0.1, "%g", worst);
    for (int64_t i = 0; i < 300; i++)
        cr_expect_leq(bound_ratio(dgamma[i], g.dgamma[i], nb_gradient_bound_parameter(&bound, NB_DGAMMA, i)), 1);
    cr_expect_leq(bound_ratio(dalpha, g.dalpha, nb_gradient_bound_parameter(&bound, NB_DALPHA, 0)), 1);
    cr_expect_gt(bound_ratio(dalpha + 1e-3 * g.abs_dalpha, g.dalpha, nb_gradient_bound_parameter(&bound, NB_DALPHA, 0)),
                 1);
}

static double without_subnormals(double v) { return fabs(v) < 0x1p-126 ? 0 : v; }

/* Operands and results of AVX512-BF16 instructions: dy and x that are subnormal are 0, and so is a subnormal dx. */
Test(gradient_bound_ends, covers_flushed_numbers_only_where_they_are_declared) {
    uint64_t r = 31;
    struct problem b released_by(problem_free), flushed released_by(problem_free);
    struct soft_gradient k = {.lanes = 8};
    uint16_t dx[4 * 64];
    float dgamma[64], dbeta[64];
    double exact[64], tolerance[64], worst[2] = {0};
    backward_init(&b, NB_OP_LAYERNORM, NB_BF16, 4, 64);
    backward_init(&flushed, NB_OP_LAYERNORM, NB_BF16, 4, 64);
    for (int64_t i = 0; i < 4 * 64; i++) {
        const double x = i % 3 ? random_normal(&r) : 1e-39 * random_normal(&r), dy = 3e-38 * random_normal(&r);
        problem_set(&b, i, x);
        backward_set_dy(&b, i, dy);
        problem_set(&flushed, i, without_subnormals(nb_round_to(x, NB_BF16)));
        backward_set_dy(&flushed, i, without_subnormals(nb_round_to(dy, NB_BF16)));
    }
    backward_statistics(&b);
    for (int i = 0; i < 4; i++) flushed.mean[i] = b.mean[i], flushed.rstd[i] = b.rstd[i];
    soft_gradient_run(&k, &flushed, dx, dgamma, dbeta);
    struct nb_gradient g released_by(nb_gradient_release) = backward_gradient(&b);
    for (int declared = 0; declared < 2; declared++) {
        struct nb_gradient_bound bound released_by(nb_gradient_bound_release);
        nb_gradient_bound_init(&bound, &b.c, &g, NULL, soft_gradient_chain(&k, 64), 4, declared);
        for (int64_t row = 0; row < 4; row++) {
            nb_gradient_row(&g, row, exact);
            nb_gradient_bound_row(&bound, row, exact, tolerance);
            for (int64_t i = 0; i < 64; i++)
                worst[declared] =
                    fmax(worst[declared],
                         bound_ratio(without_subnormals(nb_get(dx, row * 64 + i, NB_BF16)), exact[i], tolerance[i]));
        }
    }
    cr_expect(worst[0] > 1 && worst[1] <= 1, "undeclared %g, declared %g of the bound", worst[0], worst[1]);
}

/* ---- predicted losses ------------------------------------------------------------------------------------------------ */

static enum nb_loss loss_of(uint32_t op, enum nb_dtype dtype, double x, double dy, double eps) {
    struct problem b released_by(problem_free);
    double dx[16], tolerance[16];
    backward_init(&b, op, dtype, 1, 16);
    b.c.eps = eps;
    for (int64_t i = 0; i < 16; i++) {
        problem_set(&b, i, x * (1 + 0.1 * (double)i));
        backward_set_dy(&b, i, i % 2 ? dy : -dy / 2);
    }
    backward_statistics(&b);
    const enum nb_loss loss = backward_bound_of_row(&b, 16, dx, tolerance);
    cr_expect_eq(loss != NB_LOSS_NONE, isinf(tolerance[1]));
    return loss;
}

Test(gradient_bound_ends, predicts_where_a_backward_call_loses_its_result) {
    const uint32_t rms = NB_OP_RMSNORM, ln = NB_OP_LAYERNORM;
    cr_expect_eq(loss_of(rms, NB_F32, 1, 1, 1e-5), NB_LOSS_NONE);
    cr_expect_eq(loss_of(ln, NB_BF16, 1e18, 1, 1e-5), NB_LOSS_NONE);
    cr_expect_eq(loss_of(rms, NB_BF16, 1e20, 1, 1e-5), NB_LOSS_SQUARE_OVERFLOW); /* as in the forward pass */
    cr_expect_eq(loss_of(rms, NB_F32, 1e-30, 1, 1e-5), NB_LOSS_NONE);
    cr_expect_eq(loss_of(rms, NB_F32, 1e-30, 1, 0), NB_LOSS_SCALE_OVERFLOW);
    cr_expect_eq(loss_of(rms, NB_F32, 1, 1e38, 1e-5), NB_LOSS_SQUARE_OVERFLOW); /* a sum of 16 of them */
    cr_expect_eq(loss_of(rms, NB_F16, 0.001, 30, 0), NB_LOSS_NONE);
    cr_expect_eq(loss_of(rms, NB_F16, 0.0001, 60000, 0), NB_LOSS_OUTPUT_OVERFLOW);
    cr_expect_eq(loss_of(rms, NB_F32, NAN, 1, 1e-5), NB_LOSS_INPUT_NOT_FINITE);
    cr_expect_eq(loss_of(rms, NB_F32, 1, INFINITY, 1e-5), NB_LOSS_INPUT_NOT_FINITE);
    cr_expect_eq(loss_of(ln, NB_F32, 0, 1, 0), NB_LOSS_INPUT_NOT_FINITE); /* 0 * Inf */
}
