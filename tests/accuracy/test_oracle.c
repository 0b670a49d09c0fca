// SPDX-License-Identifier: Apache-2.0
/* The oracle against MPFR: every op, sizes that are no multiples of anything, and rows made to hurt. The deviation is counted in f32
 * ulp of the exact value. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>

#include "src/accuracy/oracle.h"
#include "src/core/dtype.h"
#include "src/measure/fp_state.h"
#include "tests/support/mpfr.h"
#include "tests/support/numerics.h"

#define LIMIT_ULP 1e-7

static double largest;
static void expect_exact(const struct problem *p, const char *what) {
    double worst = worst_deviation_from_mpfr(p);
    largest = fmax(largest, worst);
    cr_expect(worst < LIMIT_ULP, "%s, op %u, %s, n %lld: off by %.3g f32 ulp", what, p->c.op,
              nb_formats[p->c.dtype].name, (long long)p->c.shape.cols, worst);
}
static void report(const char *what) {
    fprintf(stderr, "oracle against MPFR, %s: at most %.2g f32 ulp\n", what, largest);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

Test(oracle, agrees_with_mpfr_for_every_op_length_and_affine_form) {
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 15, 17, 31, 64, 100, 127, 257, 384, 1000, 4097};
    for (int op = 0; op < N_ROW_OPS; op++)
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            struct problem p;
            problem_init(&p, row_ops[op], (enum nb_dtype)(l % NB_N_DTYPES), lengths[l] > 1000 ? 1 : 3, lengths[l]);
            problem_fill_normal(&p, 0.3, 2, 7 + l);
            p.c.k = lengths[l] > 3 ? lengths[l] / 3 : lengths[l];
            p.c.formula.affine = (uint32_t)(l + (size_t)op) % NB_N_AFFINES;
            p.c.formula.param = l % 2;
            p.c.formula.weight_offset = l % 3 == 1;
            p.c.formula.round_sum = l % 2;
            expect_exact(&p, "normal rows");
            problem_free(&p);
        }
    report("normal rows");
}

Test(oracle, agrees_with_mpfr_for_every_place_of_eps) {
    static const double eps[] = {0, 1e-300, 1e-12, 1e-8, 1e-5, 1e-3, 1, 1e3};
    for (int place = 0; place < NB_N_EPS_PLACES; place++)
        for (size_t i = 0; i < sizeof eps / sizeof eps[0]; i++)
            for (int op = 0; op < N_ROW_OPS; op++) {
                struct problem p;
                problem_init(&p, row_ops[op], NB_F32, 2, 37);
                problem_fill_normal(&p, 0, i % 2 ? 1 : 1e-4, 40 + i);
                p.c.eps = eps[i];
                p.c.formula.eps_place = (uint32_t)place;
                p.c.formula.affine = NB_AFFINE_GAMMA_BETA;
                expect_exact(&p, "eps");
                problem_free(&p);
            }
    report("places of eps");
}

/* beta = -gamma * xhat to all the digits that f32 has, so that y is what the rounding of beta left. */
Test(oracle, keeps_its_digits_where_beta_cancels_the_rest) {
    for (int op = 0; op < N_ROW_OPS; op++) {
        struct problem p;
        struct nb_oracle o;
        double y[64];
        problem_init(&p, row_ops[op], NB_F32, 1, 64);
        problem_fill_normal(&p, 1, 1, 99);
        p.c.formula.affine = NB_AFFINE_GAMMA;
        p.c.formula.weight_offset = 1;
        cr_assert_eq(nb_oracle_init(&o, &p.c, &p.in), 0);
        nb_oracle_row(&o, 0, y);
        for (int i = 0; i < 64; i++) p.in.beta_f32[i] = (float)-y[i];
        nb_oracle_release(&o);
        p.c.formula.affine = NB_AFFINE_GAMMA_BETA;
        if (row_ops[op] != NB_OP_DYT)
            expect_exact(&p, "cancelling beta");
        else
            cr_expect(worst_deviation_from_mpfr(&p) < 1,
                      "tanh carries 2^-52, which cancellation of 24 bits brings to some 2^-28");
        problem_free(&p);
    }
    report("cancelling beta");
}

Test(oracle, agrees_with_mpfr_on_rows_made_to_hurt) {
    static const int64_t lengths[] = {1, 2, 3, 33, 100, 770};
    for (int h = 0; h < N_HARD_KINDS; h++)
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
            for (int op = 0; op < N_ROW_OPS; op++) {
                struct problem p;
                struct random_state r = {1000 + (uint64_t)h};
                problem_init(&p, row_ops[op], NB_F32, 1, lengths[l]);
                for (int64_t i = 0; i < lengths[l]; i++) problem_set(&p, i, hard_value(h, i, lengths[l], &r));
                p.c.formula.affine = NB_AFFINE_GAMMA;
                expect_exact(&p, "rows made to hurt");
                problem_free(&p);
            }
    report("rows made to hurt");
}

/* ---- BatchNorm ------------------------------------------------------------------------------------------------------- */

static void check_batchnorm(uint32_t layout, int64_t n, int64_t channels, int64_t hw, uint32_t mode, double mean) {
    struct problem p;
    problem_init_batchnorm(&p, layout, mode == NB_TRAINING ? NB_F32 : NB_F16, n, channels, hw);
    problem_fill_normal(&p, mean, 1, 3);
    p.c.mode = mode;
    p.c.formula.affine = NB_AFFINE_GAMMA_BETA;
    expect_exact(&p, layout == NB_NHWC ? "NHWC" : "NCHW");
    problem_free(&p);
}
Test(oracle, batchnorm_agrees_with_mpfr_in_both_layouts_and_modes) {
    for (int mode = 0; mode < NB_N_MODES; mode++)
        for (double mean = 0; mean <= 1e4; mean += 1e4) {
            check_batchnorm(NB_NCHW, 3, 5, 49, (uint32_t)mode, mean);
            check_batchnorm(NB_NHWC, 3, 5, 49, (uint32_t)mode, mean);
            check_batchnorm(NB_NCHW, 1, 2, 2, (uint32_t)mode, mean);
            check_batchnorm(NB_NHWC, 1, 2, 2, (uint32_t)mode, mean);
        }
    report("batchnorm");
}

Test(oracle, running_statistics_are_mixed_with_the_unbiased_variance) {
    struct problem p;
    struct nb_oracle o;
    double mean[2], var[2];
    problem_init_batchnorm(&p, NB_NCHW, NB_F32, 1, 2, 3);
    const double x[6] = {1, 2, 3, 10, 10, 13}; /* means 2, 11; variances by n - 1: 1, 3 */
    for (int i = 0; i < 6; i++) problem_set(&p, i, x[i]);
    p.in.running_mean[0] = 1;
    p.in.running_mean[1] = 0;
    p.c.momentum = 0.25;
    cr_assert_eq(nb_oracle_init(&o, &p.c, &p.in), 0);
    nb_oracle_running(&o, mean, var);
    cr_expect_float_eq(mean[0], 1.25, 1e-15);
    cr_expect_float_eq(mean[1], 2.75, 1e-15);
    cr_expect_float_eq(var[0], 1.0, 1e-15);
    cr_expect_float_eq(var[1], 1.5, 1e-15);
    nb_oracle_release(&o);
    problem_free(&p);
}

/* ---- what has no number ---------------------------------------------------------------------------------------------- */

static void first_row(struct problem *p, double *y) {
    struct nb_oracle o;
    cr_assert_eq(nb_oracle_init(&o, &p->c, &p->in), 0);
    nb_oracle_row(&o, 0, y);
    nb_oracle_release(&o);
}

Test(oracle, rows_with_inf_or_nan_follow_ieee_evaluation) {
    struct problem p;
    double y[4];
    problem_init(&p, NB_OP_RMSNORM, NB_F32, 1, 4);
    for (int i = 0; i < 4; i++) problem_set(&p, i, i == 2 ? -INFINITY : -1.0);
    first_row(&p, y);
    cr_expect(isnan(y[2]));
    cr_expect(y[0] == 0 && signbit(y[0]), "a finite element times a scale of 0");
    p.c.op = NB_OP_PRMSNORM;
    p.c.k = 2;
    first_row(&p, y);
    cr_expect_eq(y[2], -INFINITY, "outside the statistics");
    cr_expect(isfinite(y[0]));
    p.c.op = NB_OP_LAYERNORM;
    first_row(&p, y);
    for (int i = 0; i < 4; i++) cr_expect(isnan(y[i]));
    problem_set(&p, 2, NAN);
    p.c.op = NB_OP_RMSNORM;
    first_row(&p, y);
    for (int i = 0; i < 4; i++) cr_expect(isnan(y[i]));
    problem_free(&p);
}

Test(oracle, zero_rows_keep_their_sign_and_without_eps_are_no_number) {
    struct problem p;
    double y[3];
    problem_init(&p, NB_OP_RMSNORM, NB_BF16, 1, 3);
    for (int i = 0; i < 3; i++) problem_set(&p, i, -0.0);
    first_row(&p, y);
    cr_expect(y[1] == 0 && signbit(y[1]));
    p.c.eps = 0;
    first_row(&p, y);
    cr_expect(isnan(y[1]));
    problem_free(&p);
}

Test(oracle, sums_of_two_tensors_are_rounded_as_the_formula_says) {
    struct problem p;
    struct nb_oracle o;
    double sum[1];
    problem_init(&p, NB_OP_ADD_RMSNORM, NB_BF16, 1, 1);
    problem_set(&p, 0, 256);
    nb_set(p.in.residual, 0, NB_BF16, 0.5);
    cr_assert_eq(nb_oracle_init(&o, &p.c, &p.in), 0);
    cr_expect_eq(o.truth[0].max_abs, 256.5);
    nb_oracle_residual_row(&o, 0, sum);
    cr_expect_eq(sum[0], 256);
    nb_oracle_release(&o);
    p.c.formula.round_sum = 1;
    cr_assert_eq(nb_oracle_init(&o, &p.c, &p.in), 0);
    cr_expect_eq(o.truth[0].max_abs, 256);
    nb_oracle_release(&o);
    problem_free(&p);
}

Test(oracle, copies_copy) {
    struct problem p;
    double y[2];
    problem_init(&p, NB_OP_COPY, NB_F16, 1, 2);
    problem_set(&p, 0, 1.5);
    problem_set(&p, 1, -2.25);
    first_row(&p, y);
    cr_expect(y[0] == 1.5 && y[1] == -2.25);
    problem_free(&p);
}

Test(oracle, refuses_to_run_where_subnormals_are_flushed_or_results_not_rounded_to_nearest) {
    struct problem p;
    struct nb_oracle o;
    problem_init(&p, NB_OP_RMSNORM, NB_F32, 1, 1);
    const struct nb_fp_state saved = nb_fp_state();
    for (uint64_t bit = 1; bit <= NB_FP_FLUSHES; bit <<= 1) {
        struct nb_fp_state flushing = saved;
        if (!(NB_FP_FLUSHES & bit)) continue;
        flushing.control |= bit;
        nb_fp_state_set(flushing);
        const int result = nb_oracle_init(&o, &p.c, &p.in);
        nb_fp_state_set(saved);
        cr_expect_eq(result, -1, "control bit %llx", (unsigned long long)bit);
        nb_oracle_release(&o);
    }
    fesetround(FE_DOWNWARD);
    const int result = nb_oracle_init(&o, &p.c, &p.in);
    nb_fp_state_set(saved);
    cr_expect_eq(result, -1, "rounding down");
    nb_oracle_release(&o);
    problem_free(&p);
}
