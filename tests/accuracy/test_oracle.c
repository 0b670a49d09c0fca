// SPDX-License-Identifier: Apache-2.0
/* The oracle against every op once more in 700 bits of MPFR, written without a look at it: sizes that are no multiples of anything, and rows made to hurt. The deviation is counted in f32
 * ulp of the exact value. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <mpfr.h>
#include <stdlib.h>

#include "src/accuracy/oracle.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/measure/faults.h"
#include "tests/support/numerics.h"

/* Enough to hold squares of f32 numbers from 2^-298 to 2^256 beside each other exactly. */
#define BITS 700

/* ---- the exact result ------------------------------------------------------------------------------------------------ */

struct exact {
    mpfr_t mean, var, scale, y, t;
};

static void exact_init(struct exact *e) { mpfr_inits2(BITS, e->mean, e->var, e->scale, e->y, e->t, (mpfr_ptr)0); }
static void exact_clear(struct exact *e) { mpfr_clears(e->mean, e->var, e->scale, e->y, e->t, (mpfr_ptr)0); }

static double input(const struct problem *p, int64_t i) {
    double x = nb_get(p->in.x, i, p->in.dtype);
    if (!nb_op_adds(p->c.op)) return x;
    double sum = x + nb_get(p->in.residual, i, p->in.dtype);
    return p->c.formula.round_sum ? nb_round_to(sum, p->in.dtype) : (double)(float)sum;
}

/* Index of statistics element j of the row or channel. */
static int64_t member(const struct problem *p, int64_t row, int64_t channel, int64_t j) {
    const struct nb_shape *s = &p->c.shape;
    if (p->c.op != NB_OP_BATCHNORM) return row * s->cols + j;
    if (s->layout == NB_NHWC) return j * s->c + channel;
    return (j / s->hw * s->c + channel) * s->hw + j % s->hw;
}

static void exact_statistics(struct exact *e, const struct problem *p, int64_t row, int64_t channel) {
    const uint32_t op = p->c.op;
    int64_t n = op == NB_OP_BATCHNORM ? p->c.shape.n * p->c.shape.hw : op == NB_OP_PRMSNORM ? p->c.k : p->c.shape.cols;
    mpfr_set_zero(e->mean, 1);
    mpfr_set_zero(e->var, 1);
    if (op == NB_OP_BATCHNORM && p->c.mode == NB_INFERENCE) {
        mpfr_set_flt(e->mean, p->in.running_mean[channel], MPFR_RNDN);
        mpfr_set_flt(e->var, p->in.running_var[channel], MPFR_RNDN);
        return;
    }
    for (int64_t j = 0; nb_op_centres(op) && j < n; j++)
        mpfr_add_d(e->mean, e->mean, input(p, member(p, row, channel, j)), MPFR_RNDN);
    mpfr_div_si(e->mean, e->mean, n, MPFR_RNDN);
    for (int64_t j = 0; j < n; j++) {
        mpfr_d_sub(e->t, input(p, member(p, row, channel, j)), e->mean, MPFR_RNDN);
        mpfr_sqr(e->t, e->t, MPFR_RNDN);
        mpfr_add(e->var, e->var, e->t, MPFR_RNDN);
    }
    if (op != NB_OP_L2NORM) mpfr_div_si(e->var, e->var, n, MPFR_RNDN);
}

static void exact_scale(struct exact *e, const struct problem *p) {
    const double eps = p->c.eps;
    if (p->c.formula.eps_place == NB_EPS_INSIDE) {
        mpfr_add_d(e->t, e->var, eps, MPFR_RNDN);
        mpfr_sqrt(e->t, e->t, MPFR_RNDN);
    } else {
        mpfr_sqrt(e->t, e->var, MPFR_RNDN);
        if (p->c.formula.eps_place == NB_EPS_OUTSIDE)
            mpfr_add_d(e->t, e->t, eps, MPFR_RNDN);
        else if (mpfr_cmp_d(e->t, eps) < 0)
            mpfr_set_d(e->t, eps, MPFR_RNDN);
    }
    mpfr_ui_div(e->scale, 1, e->t, MPFR_RNDN);
}

static void exact_element(struct exact *e, const struct problem *p, double x, int64_t param) {
    const struct nb_formula *f = &p->c.formula;
    if (p->c.op == NB_OP_DYT) {
        mpfr_set_d(e->y, p->c.alpha, MPFR_RNDN);
        mpfr_mul_d(e->y, e->y, x, MPFR_RNDN);
        mpfr_tanh(e->y, e->y, MPFR_RNDN);
    } else {
        mpfr_d_sub(e->y, x, e->mean, MPFR_RNDN);
        mpfr_mul(e->y, e->y, e->scale, MPFR_RNDN);
    }
    if (f->affine == NB_AFFINE_NONE) return;
    const bool narrow = f->param == NB_PARAM_X;
    mpfr_set_d(e->t, narrow ? nb_get(p->in.gamma_x, param, p->in.dtype) : (double)p->in.gamma_f32[param], MPFR_RNDN);
    if (f->weight_offset) mpfr_add_ui(e->t, e->t, 1, MPFR_RNDN);
    mpfr_mul(e->y, e->y, e->t, MPFR_RNDN);
    if (f->affine == NB_AFFINE_GAMMA_BETA)
        mpfr_add_d(e->y, e->y, narrow ? nb_get(p->in.beta_x, param, p->in.dtype) : (double)p->in.beta_f32[param],
                   MPFR_RNDN);
}

/* ---- comparison ------------------------------------------------------------------------------------------------------ */

/* Deviation in f32 ulp. An element so close to the mean of a row that reaches over more than 90 bits is measured against the
 * row: 2^-95 of mean |x| * scale is taken off. */
static double deviation(struct exact *e, double got, const struct nb_row_truth *t) {
    double want = mpfr_get_d(e->y, MPFR_RNDN);
    mpfr_sub_d(e->t, e->y, got, MPFR_RNDN);
    double error = fabs(mpfr_get_d(e->t, MPFR_RNDN));
    if (t) error = fmax(0, error - 0x1p-95 * t->mean_abs * t->scale);
    return error / nb_ulp(want, NB_F32);
}

static double worst_of_row(struct exact *e, const struct problem *p, const struct nb_oracle *o, int64_t row,
                           const double *y) {
    const struct nb_shape *s = &p->c.shape;
    double worst = 0;
    const bool by_channel = p->c.op == NB_OP_BATCHNORM, statistics = p->c.op != NB_OP_DYT;
    for (int64_t i = 0; i < s->cols; i++) {
        int64_t channel = !by_channel ? 0 : s->layout == NB_NHWC ? i : row % s->c;
        if (statistics && (i == 0 || (by_channel && s->layout == NB_NHWC))) {
            exact_statistics(e, p, row, channel);
            exact_scale(e, p);
        }
        exact_element(e, p, input(p, row * s->cols + i), by_channel ? channel : i);
        worst = fmax(worst, deviation(e, y[i], statistics ? nb_oracle_truth(o, row, i) : NULL));
    }
    return worst;
}

/* The largest deviation of y as the oracle has it from the exact one, in f32 ulp of the exact value. */
static double worst_deviation_from_mpfr(const struct problem *p) {
    struct exact e;
    exact_init(&e);
    struct nb_oracle o released_by(nb_oracle_release) = oracle_of(p);
    double *y freed = calloc((size_t)p->c.shape.cols, sizeof *y), worst = 0;
    for (int64_t r = 0; r < p->c.shape.rows; r++) {
        nb_oracle_row(&o, r, y);
        worst = fmax(worst, worst_of_row(&e, p, &o, r, y));
    }
    exact_clear(&e);
    return worst;
}

#define LIMIT_ULP 1e-7

static void expect_exact(const struct problem *p, const char *what) {
    double worst = worst_deviation_from_mpfr(p);
    cr_expect(worst < LIMIT_ULP, "%s, op %u, %s, n %lld: off by %.3g f32 ulp", what, p->c.op,
              nb_formats[p->c.dtype].name, (long long)p->c.shape.cols, worst);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

Test(oracle, agrees_with_mpfr_for_every_op_length_and_affine_form) {
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 15, 17, 31, 64, 100, 127, 257, 384, 1000, 4097};
    for (int op = 0; op < N_ROW_OPS; op++)
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            struct problem p released_by(problem_free);
            problem_init(&p, row_ops[op], (enum nb_dtype)(l % NB_N_DTYPES), lengths[l] > 1000 ? 1 : 3, lengths[l]);
            problem_fill_normal(&p, 0.3, 2, 7 + l);
            p.c.k = lengths[l] > 3 ? lengths[l] / 3 : lengths[l];
            p.c.formula.affine = (uint32_t)(l + (size_t)op) % NB_N_AFFINES;
            p.c.formula.param = l % 2;
            p.c.formula.weight_offset = l % 3 == 1;
            p.c.formula.round_sum = l % 2;
            expect_exact(&p, "normal rows");
        }
}

Test(oracle, agrees_with_mpfr_for_every_place_of_eps) {
    static const double eps[] = {0, 1e-300, 1e-12, 1e-8, 1e-5, 1e-3, 1, 1e3};
    for (int place = 0; place < NB_N_EPS_PLACES; place++)
        for (size_t i = 0; i < sizeof eps / sizeof eps[0]; i++)
            for (int op = 0; op < N_ROW_OPS; op++) {
                struct problem p released_by(problem_free);
                problem_init(&p, row_ops[op], NB_F32, 2, 37);
                problem_fill_normal(&p, 0, i % 2 ? 1 : 1e-4, 40 + i);
                p.c.eps = eps[i];
                p.c.formula.eps_place = (uint32_t)place;
                p.c.formula.affine = NB_AFFINE_GAMMA_BETA;
                expect_exact(&p, "eps");
            }
}

static void first_row(struct problem *p, double *y) {
    struct nb_oracle o released_by(nb_oracle_release) = oracle_of(p);
    nb_oracle_row(&o, 0, y);
}

/* beta = -gamma * xhat to all the digits that f32 has, so that y is what the rounding of beta left. */
Test(oracle, keeps_its_digits_where_beta_cancels_the_rest) {
    for (int op = 0; op < N_ROW_OPS; op++) {
        struct problem p released_by(problem_free);
        double y[64];
        problem_init(&p, row_ops[op], NB_F32, 1, 64);
        problem_fill_normal(&p, 1, 1, 99);
        p.c.formula.affine = NB_AFFINE_GAMMA;
        p.c.formula.weight_offset = 1;
        first_row(&p, y);
        for (int i = 0; i < 64; i++) p.in.beta_f32[i] = (float)-y[i];
        p.c.formula.affine = NB_AFFINE_GAMMA_BETA;
        if (row_ops[op] != NB_OP_DYT)
            expect_exact(&p, "cancelling beta");
        else
            cr_expect(worst_deviation_from_mpfr(&p) < 1,
                      "tanh carries 2^-52, which cancellation of 24 bits brings to some 2^-28");
    }
}

/* 3/4 of a small f32 number is often the middle of two others, and tanh lies just below: a double takes it for the middle. */
Test(oracle, tanh_beside_a_tie_rounds_as_mpfr_does) {
    struct problem p released_by(problem_free);
    struct exact e;
    double y[64];
    int n_ties = 0;
    exact_init(&e);
    problem_init(&p, NB_OP_DYT, NB_F32, 1, 64);
    problem_fill_normal(&p, 0, 1, 5);
    for (int i = 0; i < 64; i++) ((float *)p.in.x)[i] *= i < 32 ? 0x1p-30F : 0x1p-90F;
    p.c.alpha = 0.75;
    for (uint32_t affine = 0; affine < 2; affine++) {
        p.c.formula.affine = affine ? NB_AFFINE_GAMMA : NB_AFFINE_NONE;
        first_row(&p, y);
        for (int i = 0; i < 64; i++) {
            exact_element(&e, &p, input(&p, i), i);
            const double nearest = mpfr_get_d(e.y, MPFR_RNDN);
            n_ties += (float)nearest != mpfr_get_flt(e.y, MPFR_RNDN);
            cr_expect_eq((float)y[i], mpfr_get_flt(e.y, MPFR_RNDN), "element %d: %a", i, y[i]);
        }
    }
    cr_expect(n_ties > 4, "%d elements lie beside a tie", n_ties);
    exact_clear(&e);
}

Test(oracle, agrees_with_mpfr_on_rows_made_to_hurt) {
    static const int64_t lengths[] = {1, 2, 3, 33, 100, 770};
    for (int h = 0; h < N_HARD_KINDS; h++)
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
            for (int op = 0; op < N_ROW_OPS; op++) {
                struct problem p released_by(problem_free);
                uint64_t r = 1000 + (uint64_t)h;
                problem_init(&p, row_ops[op], NB_F32, 1, lengths[l]);
                for (int64_t i = 0; i < lengths[l]; i++) problem_set(&p, i, hard_value(h, i, lengths[l], &r));
                p.c.formula.affine = NB_AFFINE_GAMMA;
                expect_exact(&p, "rows made to hurt");
            }
}

/* ---- BatchNorm ------------------------------------------------------------------------------------------------------- */

static void check_batchnorm(uint32_t layout, int64_t n, int64_t channels, int64_t hw, uint32_t mode, double mean) {
    struct problem p released_by(problem_free);
    problem_init_batchnorm(&p, layout, mode == NB_TRAINING ? NB_F32 : NB_F16, n, channels, hw);
    problem_fill_normal(&p, mean, 1, 3);
    p.c.mode = mode;
    p.c.formula.affine = NB_AFFINE_GAMMA_BETA;
    expect_exact(&p, layout == NB_NHWC ? "NHWC" : "NCHW");
}
Test(oracle, batchnorm_agrees_with_mpfr_in_both_layouts_and_modes) {
    for (int mode = 0; mode < NB_N_MODES; mode++)
        for (double mean = 0; mean <= 1e4; mean += 1e4) {
            check_batchnorm(NB_NCHW, 3, 5, 49, (uint32_t)mode, mean);
            check_batchnorm(NB_NHWC, 3, 5, 49, (uint32_t)mode, mean);
            check_batchnorm(NB_NCHW, 1, 2, 2, (uint32_t)mode, mean);
            check_batchnorm(NB_NHWC, 1, 2, 2, (uint32_t)mode, mean);
        }
}

Test(oracle, running_statistics_are_mixed_with_the_unbiased_variance) {
    struct problem p released_by(problem_free);
    double mean[2], var[2];
    problem_init_batchnorm(&p, NB_NCHW, NB_F32, 1, 2, 3);
    const double x[6] = {1, 2, 3, 10, 10, 13}; /* means 2, 11; variances by n - 1: 1, 3 */
    for (int i = 0; i < 6; i++) problem_set(&p, i, x[i]);
    p.in.running_mean[0] = 1;
    p.in.running_mean[1] = 0;
    p.c.momentum = 0.25;
    struct nb_oracle o released_by(nb_oracle_release) = oracle_of(&p);
    nb_oracle_running(&o, mean, var);
    cr_expect_float_eq(mean[0], 1.25, 1e-15);
    cr_expect_float_eq(mean[1], 2.75, 1e-15);
    cr_expect_float_eq(var[0], 1.0, 1e-15);
    cr_expect_float_eq(var[1], 1.5, 1e-15);
}

/* ---- what has no number ---------------------------------------------------------------------------------------------- */

Test(oracle, rows_with_inf_or_nan_follow_ieee_evaluation) {
    struct problem p released_by(problem_free);
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
}

Test(oracle, zero_rows_keep_their_sign_and_without_eps_are_no_number) {
    struct problem p released_by(problem_free);
    double y[3];
    problem_init(&p, NB_OP_RMSNORM, NB_BF16, 1, 3);
    for (int i = 0; i < 3; i++) problem_set(&p, i, -0.0);
    first_row(&p, y);
    cr_expect(y[1] == 0 && signbit(y[1]));
    p.c.eps = 0;
    first_row(&p, y);
    cr_expect(isnan(y[1]));
}

Test(oracle, sums_of_two_tensors_are_rounded_as_the_formula_says) {
    struct problem p released_by(problem_free);
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
}

Test(oracle, copies_copy) {
    struct problem p released_by(problem_free);
    double y[2];
    problem_init(&p, NB_OP_COPY, NB_F16, 1, 2);
    problem_set(&p, 0, 1.5);
    problem_set(&p, 1, -2.25);
    first_row(&p, y);
    cr_expect(y[0] == 1.5 && y[1] == -2.25);
}

Test(oracle, refuses_to_run_where_subnormals_are_flushed_or_results_not_rounded_to_nearest) {
    struct problem p released_by(problem_free);
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
}
