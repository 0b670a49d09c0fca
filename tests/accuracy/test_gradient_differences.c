// SPDX-License-Identifier: Apache-2.0
/* That the formulas of a backward call are the gradient of the forward op: loss = sum dy * y with y of the forward oracle, whose central
 * differences, extrapolated over two steps, have an error of the fourth order. What is left is the statistics' rounding to f32. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "tests/support/numerics.h"

/* Of the row's rms: 2^-24 of each statistic, a few of them. */
#define LIMIT 1e-6

/* sum dy y, and for add_* sum dresidual_out * sum besides, at the x and parameters as they are. */
static double loss(const struct problem *b) {
    struct nb_oracle o released_by(nb_oracle_release);
    struct nb_case forward = b->c;
    const struct nb_inputs *in = &b->in;
    double *y freed = calloc((size_t)in->cols, sizeof *y), sum = 0;
    forward.pass = NB_FORWARD;
    cr_assert_eq(nb_oracle_init(&o, &forward, in), 0);
    for (int64_t row = 0; row < in->rows; row++) {
        nb_oracle_row(&o, row, y);
        for (int64_t i = 0; i < in->cols; i++) {
            const int64_t at = row * in->cols + i;
            sum += nb_get(in->dy, at, in->dtype) * y[i];
            if (nb_op_adds(b->c.op)) sum += nb_get(in->dresidual_out, at, in->dtype) * nb_get(in->x, at, in->dtype);
        }
    }
    return sum;
}

static double difference(const struct problem *b, float *value, float step) {
    const float saved = *value;
    *value = saved + step;
    const double above = loss(b);
    *value = saved - step;
    const double below = loss(b);
    *value = saved;
    return (above - below) / (2 * (double)step);
}

/* Values lie on a grid of 2^-12 below 2^6, so that a step of 2^-9 more is an f32. */
static double derivative(const struct problem *b, float *value) {
    const float h = 0x1p-8f;
    return (4 * difference(b, value, h / 2) - difference(b, value, h)) / 3;
}

static void expect_near(double got, double want, double scale, const char *what, const struct problem *b) {
    const double off = fabs(got - want) / scale;
    cr_expect(off < LIMIT, "%s, op %u, layout %u, mode %u, affine %u, offset %u: %.9g, by differences %.9g", what,
              b->c.op, b->c.shape.layout, b->c.mode, b->c.formula.affine, b->c.formula.weight_offset, got, want);
}

static void expect_parameters(const struct problem *b, const struct nb_gradient *g) {
    for (int64_t i = 0; g->dgamma && i < g->n_params; i++) {
        expect_near(g->dgamma[i], derivative(b, &b->in.gamma_f32[i]), 1 + g->abs_dgamma[i], "dgamma", b);
        if (g->dbeta) expect_near(g->dbeta[i], derivative(b, &b->in.beta_f32[i]), 1 + g->abs_dbeta[i], "dbeta", b);
    }
}

static void expect_gradient(struct problem *b) {
    double dx[64];
    float *x = b->in.x;
    for (int64_t i = 0; i < b->in.rows * b->in.cols; i++) x[i] = rintf(x[i] * 0x1p12f) * 0x1p-12f;
    for (int64_t i = 0; i < b->in.n_params; i++) b->in.gamma_f32[i] = rintf(b->in.gamma_f32[i] * 64) / 64;
    backward_statistics(b);
    struct nb_gradient g released_by(nb_gradient_release) = backward_gradient(b);
    for (int64_t row = 0; row < b->in.rows; row++) {
        nb_gradient_row(&g, row, dx);
        for (int64_t i = 0; i < b->in.cols; i++)
            expect_near(dx[i], derivative(b, &x[row * b->in.cols + i]), 1, "dx", b);
    }
    expect_parameters(b, &g);
    if (b->c.op == NB_OP_DYT) {
        const double alpha = b->c.alpha, h = 0x1p-10;
        b->c.alpha = alpha + h;
        const double above = loss(b);
        b->c.alpha = alpha - h;
        const double below = loss(b);
        b->c.alpha = alpha;
        expect_near(g.dalpha, (above - below) / (2 * h), 1 + g.abs_dalpha, "dalpha", b);
    }
}

static void no_residual(const struct problem *b) {
    for (int64_t i = 0; i < b->in.rows * b->in.cols; i++) nb_set(b->in.residual, i, b->in.dtype, 0);
}

/* eps as large as the variance, where a gradient that took eps for a part of the statistics, or left it out, would be far off. */
Test(gradient_differences, dx_dgamma_and_dbeta_are_the_derivatives_of_every_op) {
    for (size_t op = 0; op < N_ROW_OPS; op++)
        for (uint32_t affine = 0; affine < NB_N_AFFINES; affine++)
            for (uint32_t offset = 0; offset < 2; offset++) {
                struct problem b released_by(problem_free);
                backward_init(&b, row_ops[op], NB_F32, 3, 11);
                b.c.k = 4;
                b.c.eps = offset ? 1e-5 : 1;
                b.c.formula.affine = affine;
                b.c.formula.weight_offset = offset;
                backward_fill_normal(&b, 0.5, 1, 40 + op);
                no_residual(&b);
                expect_gradient(&b);
            }
}

Test(gradient_differences, batchnorm_couples_all_values_of_a_channel_in_training_and_none_in_inference) {
    for (uint32_t layout = NB_NCHW; layout <= NB_NHWC; layout++)
        for (uint32_t mode = 0; mode < NB_N_MODES; mode++)
            for (uint32_t affine = 0; affine < NB_N_AFFINES; affine++) {
                struct problem b released_by(problem_free);
                backward_init_batchnorm(&b, layout, NB_F32, 2, 3, 5);
                b.c.mode = mode;
                b.c.eps = 0.5;
                b.c.formula.affine = affine;
                b.c.formula.weight_offset = affine == NB_AFFINE_GAMMA;
                backward_fill_normal(&b, 0.5, 1, 60);
                expect_gradient(&b);
            }
}
