// SPDX-License-Identifier: Apache-2.0
/* The oracle of gradients against MPFR: every op, layout, mode and kind of row. The deviation is counted in f32 ulp of the exact value. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "src/core/dtype.h"
#include "src/measure/fp_state.h"
#include "tests/support/backward.h"
#include "tests/support/sparsely.h"

#define LIMIT_ULP 1e-7

static double largest;
static void expect_exact(const struct backward *b, const char *what) {
    const double worst = worst_gradient_deviation(b);
    largest = fmax(largest, worst);
    cr_expect(worst < LIMIT_ULP, "%s, op %u, %s, %lld x %lld: off by %.3g f32 ulp", what, b->p.c.op,
              nb_formats[b->p.c.dtype].name, (long long)b->p.in.rows, (long long)b->p.in.cols, worst);
}
static void report(const char *what) {
    fprintf(stderr, "gradients against MPFR, %s: at most %.2g f32 ulp\n", what, largest);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

Test(gradient, agrees_with_mpfr_for_every_op_length_and_affine_form) {
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 17, 31, 64, 127, 255, 256, 257, 600};
    for (int op = 0; op < N_ROW_OPS; op++)
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            struct backward b;
            backward_init(&b, row_ops[op], (enum nb_dtype)(l % NB_N_DTYPES), 3, lengths[l]);
            b.p.c.k = lengths[l] > 3 ? lengths[l] / 3 : lengths[l];
            b.p.c.formula.affine = (uint32_t)(l + (size_t)op) % NB_N_AFFINES;
            b.p.c.formula.param = l % 2;
            b.p.c.formula.weight_offset = l % 3 == 1;
            backward_fill_normal(&b, 0.3, 2, 7 + l);
            expect_exact(&b, "normal rows");
            backward_free(&b);
        }
    report("normal rows");
}

/* dy: all equal, so that g - mean(g) is nothing without a weight; as x, so that dx is next to nothing; large and small. */
static double hard_dy(int kind, double x, struct random_state *r) {
    if (kind == 0) return 1;
    if (kind == 1) return fmin(fmax(x, -1e30), 1e30);
    if (kind == 2) return 1e30 * random_normal(r);
    return 1e-42 * random_normal(r);
}

Test(gradient, agrees_with_mpfr_on_rows_made_to_hurt) {
    static const int64_t lengths[] = {2, 3, 33, 100};
    struct random_state r = {77};
    for (int op = 0; op < N_ROW_OPS; op++)
        for (int kind = 0; kind < N_HARD_KINDS * 4; kind += one_in(3))
            for (int l = 0; l < 4; l++) {
                struct backward b;
                backward_init(&b, row_ops[op], NB_F32, 2, lengths[l]);
                for (int64_t i = 0; i < 2 * lengths[l]; i++) {
                    const double x = hard_value(kind / 4, i % lengths[l], lengths[l], &r);
                    problem_set(&b.p, i, x);
                    backward_set_dy(&b, i, hard_dy(kind % 4, x, &r));
                }
                b.p.c.formula.affine = kind % 4 == 0 ? NB_AFFINE_NONE : NB_AFFINE_GAMMA_BETA;
                b.p.c.formula.weight_offset = l % 2;
                for (int64_t i = 0; l == 3 && i < lengths[l]; i++)
                    b.p.in.gamma_f32[i] = (float)(1e-20 * random_normal(&r)); /* 1 + gamma is no double */
                backward_statistics(&b);
                expect_exact(&b, "rows made to hurt");
                backward_free(&b);
            }
    report("rows made to hurt");
}

/* The gradient past the norm takes nearly all of the norm's own away. */
Test(gradient, keeps_its_digits_where_the_residual_cancels_the_rest) {
    for (int op = NB_OP_ADD_RMSNORM; op <= NB_OP_ADD_LAYERNORM; op++) {
        struct backward b;
        struct nb_gradient g;
        double dx[64];
        backward_init(&b, (uint32_t)op, NB_F32, 1, 64);
        backward_fill_normal(&b, 1, 1, 3);
        for (int64_t i = 0; i < 64; i++) nb_set(b.p.in.dresidual_out, i, NB_F32, 0);
        backward_gradient(&g, &b);
        nb_gradient_row(&g, 0, dx);
        for (int64_t i = 0; i < 64; i++) nb_set(b.p.in.dresidual_out, i, NB_F32, -dx[i]);
        nb_gradient_release(&g);
        expect_exact(&b, "cancelling residual");
        backward_free(&b);
    }
    report("cancelling residual");
}

/* Twenty thousand terms that cancel down to the last digits: dy alternates, and one row differs. */
Test(gradient, column_sums_of_many_rows_are_exact) {
    struct backward b;
    backward_init(&b, NB_OP_LAYERNORM, NB_F32, 20001, 2);
    b.p.c.formula.affine = NB_AFFINE_GAMMA_BETA;
    for (int64_t row = 0; row < 20001; row++)
        for (int64_t i = 0; i < 2; i++) {
            problem_set(&b.p, 2 * row + i, (double)(i ? 3 : -1) * (row == 5 ? 1.0001 : 1));
            backward_set_dy(&b, 2 * row + i, row == 7 ? 1e-9 : row % 2 ? 1e10 / 3 : -1e10 / 3);
        }
    backward_statistics(&b);
    expect_exact(&b, "long columns");
    report("long columns");
    backward_free(&b);
}

/* ---- BatchNorm ------------------------------------------------------------------------------------------------------- */

static void check_batchnorm(uint32_t layout, int64_t n, int64_t channels, int64_t hw, uint32_t mode, double mean) {
    struct backward b;
    backward_init_batchnorm(&b, layout, mode == NB_TRAINING ? NB_F32 : NB_F16, n, channels, hw);
    b.p.c.mode = mode;
    b.p.c.formula.affine = NB_AFFINE_GAMMA_BETA;
    b.p.c.formula.weight_offset = hw % 2;
    backward_fill_normal(&b, mean, 1, 3);
    expect_exact(&b, layout == NB_NHWC ? "NHWC" : "NCHW");
    b.p.c.formula.affine = NB_AFFINE_NONE;
    expect_exact(&b, "without gamma");
    backward_free(&b);
}

Test(gradient, batchnorm_agrees_with_mpfr_in_both_layouts_and_modes) {
    for (uint32_t layout = NB_NCHW; layout <= NB_NHWC; layout++)
        for (uint32_t mode = 0; mode < NB_N_MODES; mode++)
            for (double mean = 0; mean <= 1e4; mean += 1e4) {
                check_batchnorm(layout, 3, 5, 49, mode, mean);
                check_batchnorm(layout, 1, 2, 2, mode, mean);
                check_batchnorm(layout, 2, 3, 300, mode, mean);
                check_batchnorm(layout, 1, 1, 1, mode, mean);
            }
    report("batchnorm");
}

/* ---- what is left out, and what has no number ------------------------------------------------------------------------ */

Test(gradient, gives_what_the_formula_has_and_no_more) {
    for (uint32_t affine = 0; affine < NB_N_AFFINES; affine++) {
        struct backward b;
        struct nb_gradient g;
        backward_init(&b, NB_OP_LAYERNORM, NB_BF16, 2, 5);
        b.p.c.formula.affine = affine;
        backward_fill_normal(&b, 0, 1, 1);
        backward_gradient(&g, &b);
        cr_expect_eq(g.dgamma != NULL, affine != NB_AFFINE_NONE);
        cr_expect_eq(g.dbeta != NULL, affine == NB_AFFINE_GAMMA_BETA);
        nb_gradient_release(&g);
        backward_free(&b);
    }
}

/* x of add_* is the sum that was stored, whatever the residual holds. */
Test(gradient, takes_x_of_an_add_as_the_stored_sum) {
    struct backward plain, add;
    backward_init(&plain, NB_OP_LAYERNORM, NB_F16, 2, 9);
    backward_init(&add, NB_OP_ADD_LAYERNORM, NB_F16, 2, 9);
    backward_fill_normal(&plain, 1, 1, 4);
    backward_fill_normal(&add, 1, 1, 4);
    for (int i = 0; i < 2; i++) cr_expect(plain.mean[i] == add.mean[i] && plain.rstd[i] == add.rstd[i]);
    backward_free(&plain);
    backward_free(&add);
}

static void dx_of_first_row(const struct backward *b, double *dx) {
    struct nb_gradient g;
    backward_gradient(&g, b);
    nb_gradient_row(&g, 0, dx);
    nb_gradient_release(&g);
}

Test(gradient, rows_with_inf_or_nan_follow_ieee_evaluation) {
    struct backward b;
    struct nb_gradient g;
    double dx[4];
    backward_init(&b, NB_OP_RMSNORM, NB_F32, 2, 4);
    b.p.c.formula.affine = NB_AFFINE_GAMMA;
    backward_fill_normal(&b, 1, 1, 2);
    problem_set(&b.p, 2, -INFINITY);
    backward_statistics(&b);
    cr_expect_eq(b.rstd[0], 0);
    dx_of_first_row(&b, dx);
    for (int i = 0; i < 4; i++) cr_expect(isnan(dx[i]), "Inf * 0 is in the sum");
    backward_gradient(&g, &b);
    cr_expect(isnan(g.dgamma[2]) && isfinite(g.dgamma[1]), "and in one column");
    nb_gradient_row(&g, 1, dx);
    for (int i = 0; i < 4; i++) cr_expect(isfinite(dx[i]), "the other row knows nothing of it");
    nb_gradient_release(&g);
    problem_set(&b.p, 2, 1);
    backward_statistics(&b);
    backward_set_dy(&b, 3, INFINITY);
    dx_of_first_row(&b, dx);
    cr_expect(isinf(dx[0]) && isnan(dx[3]), "Inf - Inf in one element alone");
    b.p.c.op = NB_OP_PRMSNORM;
    b.p.c.k = 2;
    backward_statistics(&b);
    dx_of_first_row(&b, dx);
    cr_expect(isinf(dx[0]) && isfinite(dx[2]) && dx[3] == INFINITY, "beyond k no sum is used");
    backward_free(&b);
}

Test(gradient, statistics_are_the_exact_ones_rounded_once) {
    struct backward b;
    struct nb_oracle o;
    backward_init(&b, NB_OP_LAYERNORM, NB_F32, 50, 33);
    backward_fill_normal(&b, 3, 1, 6);
    cr_assert_eq(nb_oracle_init(&o, &b.p.c, &b.p.in), 0);
    for (int i = 0; i < 50; i++) {
        cr_expect_eq(b.mean[i], (float)o.truth[i].mean);
        cr_expect_eq(b.rstd[i], (float)o.truth[i].scale);
    }
    nb_oracle_release(&o);
    backward_free(&b);
}

Test(gradient, refuses_to_run_where_subnormals_are_flushed) {
    struct backward b;
    struct nb_gradient g;
    backward_init(&b, NB_OP_RMSNORM, NB_F32, 1, 1);
    backward_statistics(&b);
    const struct nb_fp_state saved = nb_fp_state();
    struct nb_fp_state flushing = saved;
    if (!NB_FP_FLUSHES) cr_skip("nothing is known to flush here");
    flushing.control |= NB_FP_FLUSHES;
    nb_fp_state_set(flushing);
    const int result = nb_gradient_init(&g, &b.p.c, &b.p.in, b.mean, b.rstd);
    nb_fp_state_set(saved);
    cr_expect_eq(result, -1);
    nb_gradient_release(&g);
    backward_free(&b);
}
