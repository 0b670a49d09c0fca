// SPDX-License-Identifier: Apache-2.0
/* The noise of the inputs is what the oracle says of inputs that are really moved; the reference is as good as its bound; ratios are
 * those of hand-made errors. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/yardstick.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "tests/support/numerics.h"

/* An f32 problem whose x is so coarse that half an f16 ulp more is exact: the noise of a f16 problem, replayed by the f32 oracle. */
static void moved(struct problem *fine, const struct problem *coarse, const struct nb_oracle *o, int k) {
    const int64_t cols = coarse->in.cols, n = coarse->in.rows * cols;
    for (int64_t i = 0; i < n; i++) {
        const double x = nb_get(coarse->in.x, i, NB_F16) + (o ? nb_noise_move(o, false, i / cols, i % cols, k) : 0);
        ((float *)fine->in.x)[i] = (float)x;
        cr_assert_eq((double)((float *)fine->in.x)[i], x);
        if (!coarse->in.residual) continue;
        const double r =
            nb_get(coarse->in.residual, i, NB_F16) + (o ? nb_noise_move(o, true, i / cols, i % cols, k) : 0);
        ((float *)fine->in.residual)[i] = (float)r;
    }
    memcpy(fine->in.gamma_f32, coarse->in.gamma_f32, (size_t)coarse->in.n_params * sizeof(float));
    memcpy(fine->in.beta_f32, coarse->in.beta_f32, (size_t)coarse->in.n_params * sizeof(float));
}

/* Exact y of all rows. */
static double *exact_of(const struct problem *p) {
    double *y = calloc((size_t)(p->in.rows * p->in.cols), sizeof *y);
    struct nb_oracle o released_by(nb_oracle_release) = oracle_of(p);
    for (int64_t r = 0; r < p->in.rows; r++) nb_oracle_row(&o, r, y + r * p->in.cols);
    return y;
}

static void agrees(struct problem *coarse, struct problem *fine, const char *what) {
    struct nb_yardstick yardstick released_by(nb_yardstick_release);
    const int64_t rows = coarse->in.rows, cols = coarse->in.cols;
    double *largest freed = calloc((size_t)rows, sizeof *largest);
    struct nb_oracle o released_by(nb_oracle_release) = oracle_of(coarse);
    nb_yardstick_init(&yardstick, &o);
    moved(fine, coarse, NULL, 0);
    double *at freed = exact_of(fine);
    for (int k = 0; k < NB_PERTURBATIONS; k++) {
        moved(fine, coarse, &o, k);
        double *now freed = exact_of(fine);
        for (int64_t i = 0; i < rows * cols; i++) largest[i / cols] = fmax(largest[i / cols], fabs(now[i] - at[i]));
    }
    for (int64_t r = 0; r < rows; r++) {
        const double said = yardstick.noise[r];
        cr_expect(fabs(said - largest[r]) <= 1e-6 * largest[r] + 1e-13, "%s, row %d: said %g, is %g", what, (int)r,
                  said, largest[r]);
    }
}

Test(noise, is_what_inputs_that_are_really_moved_do) {
    static const struct {
        uint32_t op;
        double mean, sd, eps;
        uint32_t place;
        const char *what;
    } rows[] = {
        {NB_OP_RMSNORM, 0, 1, 1e-5, NB_EPS_INSIDE, "rmsnorm"},
        {NB_OP_RMSNORM, 0, 0.01, 1e-3, NB_EPS_OUTSIDE, "rmsnorm, eps outside"},
        {NB_OP_RMSNORM, 0, 0.01, 1e-3, NB_EPS_CLAMP, "rmsnorm, eps as a floor"},
        {NB_OP_PRMSNORM, 0, 1, 1e-5, NB_EPS_INSIDE, "prmsnorm"},
        {NB_OP_L2NORM, 3, 1, 1e-5, NB_EPS_INSIDE, "l2norm"},
        {NB_OP_LAYERNORM, 0, 1, 1e-5, NB_EPS_INSIDE, "layernorm"},
        {NB_OP_LAYERNORM, 300, 1, 1e-5, NB_EPS_INSIDE, "layernorm far from 0"},
        {NB_OP_LAYERNORM, 2000, 0, 1e-5, NB_EPS_INSIDE, "layernorm of constants, where the noise is all there is"},
        {NB_OP_ADD_RMSNORM, 0, 1, 1e-5, NB_EPS_INSIDE, "add_rmsnorm"},
        {NB_OP_ADD_LAYERNORM, 5, 1, 1e-5, NB_EPS_INSIDE, "add_layernorm"},
        {NB_OP_DYT, 0, 1, 0, NB_EPS_INSIDE, "dyt"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct problem coarse released_by(problem_free), fine released_by(problem_free);
        problem_init(&coarse, rows[i].op, NB_F16, 3, 40);
        problem_init(&fine, rows[i].op, NB_F32, 3, 40);
        problem_fill_normal(&coarse, rows[i].mean, rows[i].sd, i + 1);
        coarse.c.eps = fine.c.eps = rows[i].eps;
        coarse.c.formula.eps_place = fine.c.formula.eps_place = rows[i].place;
        coarse.c.k = fine.c.k = 10;
        coarse.c.alpha = fine.c.alpha = 0.5;
        coarse.c.formula.affine = fine.c.formula.affine = NB_AFFINE_GAMMA_BETA;
        agrees(&coarse, &fine, rows[i].what);
    }
}

Test(noise, goes_by_channels_for_batchnorm) {
    for (uint32_t layout = NB_NCHW; layout <= NB_NHWC; layout++)
        for (uint32_t mode = 0; mode < NB_N_MODES; mode++) {
            struct problem coarse released_by(problem_free), fine released_by(problem_free);
            problem_init_batchnorm(&coarse, layout, NB_F16, 4, 3, 5);
            problem_init_batchnorm(&fine, layout, NB_F32, 4, 3, 5);
            problem_fill_normal(&coarse, 10, 1, 7);
            coarse.c.mode = fine.c.mode = mode;
            for (int64_t i = 0; i < 3; i++) {
                coarse.in.running_mean[i] = fine.in.running_mean[i] = 10;
                coarse.in.running_var[i] = fine.in.running_var[i] = 1.5f;
            }
            agrees(&coarse, &fine, mode == NB_TRAINING ? "training" : "inference");
        }
}

Test(noise, a_row_without_a_finite_result_has_none) {
    struct problem p released_by(problem_free);
    struct nb_yardstick yardstick released_by(nb_yardstick_release);
    problem_init(&p, NB_OP_RMSNORM, NB_F32, 1, 8);
    problem_fill_normal(&p, 0, 1, 3);
    ((float *)p.in.x)[3] = INFINITY;
    struct nb_oracle o released_by(nb_oracle_release) = oracle_of(&p);
    nb_yardstick_init(&yardstick, &o);
    cr_expect(isnan(yardstick.noise[0]));
}

/* Two passes, 16 lanes: its chain is n / 16 + 4 and a few. */
/* y off by so many steps in one place. */
static struct nb_accuracy ratios_with(const struct problem *p, int steps, float in_place_of_first) {
    struct nb_yardstick yardstick released_by(nb_yardstick_release);
    struct nb_accuracy a = {0};
    const int64_t cols = p->in.cols;
    struct nb_oracle o released_by(nb_oracle_release) = oracle_of(p);
    nb_yardstick_init(&yardstick, &o);
    struct nb_ratios ratios = {.yardstick = &yardstick};
    double *exact freed = calloc((size_t)cols, sizeof *exact);
    float *y freed = calloc((size_t)cols, sizeof *y);
    for (int64_t r = 0; r < p->in.rows; r++) {
        nb_oracle_row(&o, r, exact);
        for (int64_t i = 0; i < cols; i++) y[i] = (float)exact[i];
        for (int i = 0; i < steps; i++) y[5] = nextafterf(y[5], INFINITY);
        if (isnan(in_place_of_first)) y[0] = in_place_of_first;
        nb_ratios_row(&ratios, r, y, exact);
    }
    nb_ratios_finish(&ratios, &a);
    return a;
}

Test(ratios, compare_with_noise) {
    struct problem p released_by(problem_free);
    problem_init(&p, NB_OP_RMSNORM, NB_F32, 2, 256);
    problem_fill_normal(&p, 0, 1, 9);
    struct nb_accuracy right = ratios_with(&p, 0, 0), off = ratios_with(&p, 1000, 0);
    cr_expect(right.has_ratios && right.noise_ratio <= 1, "%g", right.noise_ratio);
    cr_expect_gt(off.noise_ratio, 50);
    cr_expect(isnan(ratios_with(&p, 0, NAN).noise_ratio), "of a NaN there is none");
}
