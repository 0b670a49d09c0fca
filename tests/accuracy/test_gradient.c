// SPDX-License-Identifier: Apache-2.0
/* The oracle of gradients against the formulas of a backward call (kernels/kernel.h) once more in 700 bits of MPFR, written without a look at
 * it: every op, layout, mode and kind of row. The deviation is counted in f32 ulp of the exact value. */
#include <criterion/criterion.h>
#include <math.h>
#include <mpfr.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/measure/faults.h"
#include "tests/support/numerics.h"
#include "tests/support/sparsely.h"

#define BITS 700

struct exact {
    mpfr_t sum_g, sum_gx, g, w, xhat, t, size;
};

static void exact_init(struct exact *e) {
    mpfr_inits2(BITS, e->sum_g, e->sum_gx, e->g, e->w, e->xhat, e->t, e->size, (mpfr_ptr)0);
}
static void exact_clear(struct exact *e) {
    mpfr_clears(e->sum_g, e->sum_gx, e->g, e->w, e->xhat, e->t, e->size, (mpfr_ptr)0);
}

/* Statistics and parameter of the element in row and col. */
static int64_t stat_of(const struct problem *b, int64_t row, int64_t col) {
    const struct nb_shape *s = &b->c.shape;
    return b->c.op != NB_OP_BATCHNORM ? row : s->layout == NB_NHWC ? col : row % s->c;
}
static int64_t param_of(const struct problem *b, int64_t row, int64_t col) {
    return b->c.op == NB_OP_BATCHNORM ? stat_of(b, row, col) : col;
}

/* Rows that have elements of these statistics: first <= row < end. */
struct range {
    int64_t first, end;
};
static struct range rows_of(const struct problem *b, int64_t stat) {
    if (b->c.op == NB_OP_BATCHNORM) return (struct range){0, b->in.rows};
    return (struct range){stat, stat + 1};
}

/* Sets w, g = dy w and xhat (DyT: tanh) of an element. */
static void set_element(struct exact *e, const struct problem *b, int64_t row, int64_t col) {
    const struct nb_inputs *in = &b->in;
    const struct nb_formula *f = &b->c.formula;
    const int64_t i = row * in->cols + col, param = param_of(b, row, col), stat = stat_of(b, row, col);
    mpfr_set_ui(e->w, 1, MPFR_RNDN);
    if (f->affine != NB_AFFINE_NONE) {
        const bool narrow = f->param == NB_PARAM_X;
        mpfr_set_d(e->w, narrow ? nb_get(in->gamma_x, param, in->dtype) : (double)in->gamma_f32[param], MPFR_RNDN);
        if (f->weight_offset) mpfr_add_ui(e->w, e->w, 1, MPFR_RNDN);
    }
    mpfr_mul_d(e->g, e->w, nb_get(in->dy, i, in->dtype), MPFR_RNDN);
    mpfr_set_d(e->xhat, nb_get(in->x, i, in->dtype), MPFR_RNDN);
    if (b->c.op == NB_OP_DYT) {
        mpfr_mul_d(e->xhat, e->xhat, b->c.alpha, MPFR_RNDN);
        mpfr_tanh(e->xhat, e->xhat, MPFR_RNDN);
        return;
    }
    if (nb_op_centres(b->c.op)) mpfr_sub_d(e->xhat, e->xhat, b->mean[stat], MPFR_RNDN);
    mpfr_mul_d(e->xhat, e->xhat, b->rstd[stat], MPFR_RNDN);
}

static bool is_coupled(const struct problem *b, int64_t col) {
    if (b->c.op == NB_OP_BATCHNORM) return b->c.mode == NB_TRAINING;
    return b->c.op != NB_OP_PRMSNORM || col < b->c.k;
}

/* The two means of the row or channel that `stat` stands for. */
static void set_means(struct exact *e, const struct problem *b, int64_t stat) {
    const struct range rows = rows_of(b, stat);
    mpfr_set_zero(e->sum_g, 1);
    mpfr_set_zero(e->sum_gx, 1);
    int64_t n = 0;
    for (int64_t row = rows.first; row < rows.end; row++)
        for (int64_t col = 0; col < b->in.cols; col++) {
            if (stat_of(b, row, col) != stat) continue;
            set_element(e, b, row, col);
            mpfr_add(e->sum_g, e->sum_g, e->g, MPFR_RNDN);
            mpfr_mul(e->t, e->g, e->xhat, MPFR_RNDN);
            mpfr_add(e->sum_gx, e->sum_gx, e->t, MPFR_RNDN);
            n++;
        }
    if (b->c.op == NB_OP_PRMSNORM) n = b->c.k;
    if (b->c.op != NB_OP_L2NORM) mpfr_div_si(e->sum_gx, e->sum_gx, n, MPFR_RNDN);
    mpfr_div_si(e->sum_g, e->sum_g, n, MPFR_RNDN);
    if (!nb_op_centres(b->c.op)) mpfr_set_zero(e->sum_g, 1);
}

/* |got - t| in f32 ulp of t, less 2^-90 of size. */
static double deviation(struct exact *e, double got) {
    const double want = mpfr_get_d(e->t, MPFR_RNDN), floor = 0x1p-90 * mpfr_get_d(e->size, MPFR_RNDN);
    mpfr_sub_d(e->t, e->t, got, MPFR_RNDN);
    const double error = fabs(mpfr_get_d(e->t, MPFR_RNDN)) - floor;
    cr_assert(!isnan(error), "%g, should be %g", got, want);
    return error > 0 ? error / nb_ulp(want, NB_F32) : 0;
}

/* t += sign * v; size += |v| */
static void add_term(struct exact *e, mpfr_ptr v, int sign) {
    if (sign > 0)
        mpfr_add(e->t, e->t, v, MPFR_RNDN);
    else
        mpfr_sub(e->t, e->t, v, MPFR_RNDN);
    mpfr_abs(v, v, MPFR_RNDN);
    mpfr_add(e->size, e->size, v, MPFR_RNDN);
}

/* dx of an element, after set_means: sums stay as they are. */
static double deviation_of_dx(struct exact *e, const struct problem *b, int64_t row, int64_t col, double got) {
    const struct nb_inputs *in = &b->in;
    set_element(e, b, row, col);
    mpfr_set_zero(e->t, 1);
    mpfr_set_zero(e->size, 1);
    if (b->c.op == NB_OP_DYT) {
        mpfr_sqr(e->xhat, e->xhat, MPFR_RNDN);
        mpfr_ui_sub(e->xhat, 1, e->xhat, MPFR_RNDN);
        mpfr_mul(e->t, e->g, e->xhat, MPFR_RNDN);
        mpfr_mul_d(e->t, e->t, b->c.alpha, MPFR_RNDN);
        return deviation(e, got);
    }
    add_term(e, e->g, 1);
    if (is_coupled(b, col)) {
        mpfr_mul(e->xhat, e->xhat, e->sum_gx, MPFR_RNDN);
        add_term(e, e->xhat, -1);
        mpfr_set(e->xhat, e->sum_g, MPFR_RNDN);
        add_term(e, e->xhat, -1);
    }
    mpfr_mul_d(e->t, e->t, b->rstd[stat_of(b, row, col)], MPFR_RNDN);
    mpfr_mul_d(e->size, e->size, b->rstd[stat_of(b, row, col)], MPFR_RNDN);
    if (nb_op_adds(b->c.op))
        mpfr_add_d(e->t, e->t, nb_get(in->dresidual_out, row * in->cols + col, in->dtype), MPFR_RNDN);
    return deviation(e, got);
}

static double worst_of_dx(struct exact *e, const struct problem *b, const struct nb_gradient *g) {
    const struct nb_shape *s = &b->c.shape;
    double *dx freed = calloc((size_t)(s->rows * s->cols), sizeof *dx), worst = 0;
    for (int64_t row = 0; row < s->rows; row++) nb_gradient_row(g, row, dx + row * s->cols);
    for (int64_t stat = 0; stat < b->n_stats; stat++) {
        if (b->c.op != NB_OP_DYT) set_means(e, b, stat);
        const struct range rows = rows_of(b, stat);
        for (int64_t row = rows.first; row < rows.end; row++)
            for (int64_t col = 0; col < s->cols; col++)
                if (stat_of(b, row, col) == stat)
                    worst = fmax(worst, deviation_of_dx(e, b, row, col, dx[row * s->cols + col]));
    }
    return worst;
}

/* Sum of dy xhat (dgamma), of dy, or of dy w x (1 - tanh^2) over all elements (dalpha). */
enum sum_kind { DGAMMA, DBETA, DALPHA };

static double deviation_of_sum(struct exact *e, const struct problem *b, enum sum_kind kind, int64_t param,
                               double got) {
    const struct nb_inputs *in = &b->in;
    mpfr_set_zero(e->t, 1);
    mpfr_set_zero(e->size, 1);
    for (int64_t row = 0; row < in->rows; row++)
        for (int64_t col = 0; col < in->cols; col++) {
            if (kind != DALPHA && param_of(b, row, col) != param) continue;
            set_element(e, b, row, col);
            if (kind == DALPHA) {
                mpfr_sqr(e->xhat, e->xhat, MPFR_RNDN);
                mpfr_ui_sub(e->xhat, 1, e->xhat, MPFR_RNDN);
                mpfr_mul(e->xhat, e->xhat, e->g, MPFR_RNDN);
                mpfr_mul_d(e->xhat, e->xhat, nb_get(in->x, row * in->cols + col, in->dtype), MPFR_RNDN);
            } else {
                if (kind == DBETA) mpfr_set_ui(e->xhat, 1, MPFR_RNDN);
                mpfr_mul_d(e->xhat, e->xhat, nb_get(in->dy, row * in->cols + col, in->dtype), MPFR_RNDN);
            }
            add_term(e, e->xhat, 1);
        }
    /* tanh and its slope are had to some 2^-51 of themselves, which a sum that cancels magnifies */
    if (b->c.op == NB_OP_DYT && kind != DBETA) mpfr_mul_d(e->size, e->size, 0x1p40, MPFR_RNDN);
    return deviation(e, got);
}

/* The largest deviation of dx, dgamma, dbeta and dalpha from their exact values by MPFR, in f32 ulp of those. What cancels below
 * 2^-90 of its terms is measured against them. */
static double worst_gradient_deviation(const struct problem *b) {
    struct exact e;
    exact_init(&e);
    struct nb_gradient g released_by(nb_gradient_release) = backward_gradient(b);
    double worst = worst_of_dx(&e, b, &g);
    for (int64_t i = 0; g.dgamma && i < g.n_params; i++) {
        worst = fmax(worst, deviation_of_sum(&e, b, DGAMMA, i, g.dgamma[i]));
        if (g.dbeta) worst = fmax(worst, deviation_of_sum(&e, b, DBETA, i, g.dbeta[i]));
    }
    if (b->c.op == NB_OP_DYT) worst = fmax(worst, deviation_of_sum(&e, b, DALPHA, 0, g.dalpha));
    exact_clear(&e);
    return worst;
}

#define LIMIT_ULP 1e-7

static void expect_exact(const struct problem *b, const char *what) {
    const double worst = worst_gradient_deviation(b);
    cr_expect(worst < LIMIT_ULP, "%s, op %u, %s, %lld x %lld: off by %.3g f32 ulp", what, b->c.op,
              nb_formats[b->c.dtype].name, (long long)b->in.rows, (long long)b->in.cols, worst);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

Test(gradient, agrees_with_mpfr_for_every_op_length_and_affine_form) {
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 17, 31, 64, 127, 255, 256, 257, 600};
    for (int op = 0; op < N_ROW_OPS; op++)
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            struct problem b released_by(problem_free);
            backward_init(&b, row_ops[op], (enum nb_dtype)(l % NB_N_DTYPES), 3, lengths[l]);
            b.c.k = lengths[l] > 3 ? lengths[l] / 3 : lengths[l];
            b.c.formula.affine = (uint32_t)(l + (size_t)op) % NB_N_AFFINES;
            b.c.formula.param = l % 2;
            b.c.formula.weight_offset = l % 3 == 1;
            backward_fill_normal(&b, 0.3, 2, 7 + l);
            expect_exact(&b, "normal rows");
        }
}

/* dy: all equal, so that g - mean(g) is nothing without a weight; as x, so that dx is next to nothing; large and small. */
static double hard_dy(int kind, double x, uint64_t *r) {
    if (kind == 0) return 1;
    if (kind == 1) return fmin(fmax(x, -1e30), 1e30);
    if (kind == 2) return 1e30 * random_normal(r);
    return 1e-42 * random_normal(r);
}

Test(gradient, agrees_with_mpfr_on_rows_made_to_hurt) {
    static const int64_t lengths[] = {2, 3, 33, 100};
    uint64_t r = 77;
    for (int op = 0; op < N_ROW_OPS; op++)
        for (int kind = 0; kind < N_HARD_KINDS * 4; kind += one_in(3))
            for (int l = 0; l < 4; l++) {
                struct problem b released_by(problem_free);
                backward_init(&b, row_ops[op], NB_F32, 2, lengths[l]);
                for (int64_t i = 0; i < 2 * lengths[l]; i++) {
                    const double x = hard_value(kind / 4, i % lengths[l], lengths[l], &r);
                    problem_set(&b, i, x);
                    backward_set_dy(&b, i, hard_dy(kind % 4, x, &r));
                }
                b.c.formula.affine = kind % 4 == 0 ? NB_AFFINE_NONE : NB_AFFINE_GAMMA_BETA;
                b.c.formula.weight_offset = l % 2;
                for (int64_t i = 0; l == 3 && i < lengths[l]; i++)
                    b.in.gamma_f32[i] = (float)(1e-20 * random_normal(&r)); /* 1 + gamma is no double */
                backward_statistics(&b);
                expect_exact(&b, "rows made to hurt");
            }
}

/* The gradient past the norm takes nearly all of the norm's own away. */
Test(gradient, keeps_its_digits_where_the_residual_cancels_the_rest) {
    for (int op = NB_OP_ADD_RMSNORM; op <= NB_OP_ADD_LAYERNORM; op++) {
        struct problem b released_by(problem_free);
        double dx[64];
        backward_init(&b, (uint32_t)op, NB_F32, 1, 64);
        backward_fill_normal(&b, 1, 1, 3);
        for (int64_t i = 0; i < 64; i++) nb_set(b.in.dresidual_out, i, NB_F32, 0);
        struct nb_gradient g released_by(nb_gradient_release) = backward_gradient(&b);
        nb_gradient_row(&g, 0, dx);
        for (int64_t i = 0; i < 64; i++) nb_set(b.in.dresidual_out, i, NB_F32, -dx[i]);
        expect_exact(&b, "cancelling residual");
    }
}

/* Twenty thousand terms that cancel down to the last digits: dy alternates, and one row differs. */
Test(gradient, column_sums_of_many_rows_are_exact) {
    struct problem b released_by(problem_free);
    backward_init(&b, NB_OP_LAYERNORM, NB_F32, 20001, 2);
    b.c.formula.affine = NB_AFFINE_GAMMA_BETA;
    for (int64_t row = 0; row < 20001; row++)
        for (int64_t i = 0; i < 2; i++) {
            problem_set(&b, 2 * row + i, (double)(i ? 3 : -1) * (row == 5 ? 1.0001 : 1));
            backward_set_dy(&b, 2 * row + i, row == 7 ? 1e-9 : row % 2 ? 1e10 / 3 : -1e10 / 3);
        }
    backward_statistics(&b);
    expect_exact(&b, "long columns");
}

/* ---- BatchNorm ------------------------------------------------------------------------------------------------------- */

static void check_batchnorm(uint32_t layout, int64_t n, int64_t channels, int64_t hw, uint32_t mode, double mean) {
    struct problem b released_by(problem_free);
    backward_init_batchnorm(&b, layout, mode == NB_TRAINING ? NB_F32 : NB_F16, n, channels, hw);
    b.c.mode = mode;
    b.c.formula.affine = NB_AFFINE_GAMMA_BETA;
    b.c.formula.weight_offset = hw % 2;
    backward_fill_normal(&b, mean, 1, 3);
    expect_exact(&b, layout == NB_NHWC ? "NHWC" : "NCHW");
    b.c.formula.affine = NB_AFFINE_NONE;
    expect_exact(&b, "without gamma");
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
}

/* ---- what is left out, and what has no number ------------------------------------------------------------------------ */

static void dx_of_first_row(const struct problem *b, double *dx) {
    struct nb_gradient g released_by(nb_gradient_release) = backward_gradient(b);
    nb_gradient_row(&g, 0, dx);
}

Test(gradient, rows_with_inf_or_nan_follow_ieee_evaluation) {
    struct problem b released_by(problem_free);
    double dx[4];
    backward_init(&b, NB_OP_RMSNORM, NB_F32, 2, 4);
    b.c.formula.affine = NB_AFFINE_GAMMA;
    backward_fill_normal(&b, 1, 1, 2);
    problem_set(&b, 2, -INFINITY);
    backward_statistics(&b);
    cr_expect_eq(b.rstd[0], 0);
    dx_of_first_row(&b, dx);
    for (int i = 0; i < 4; i++) cr_expect(isnan(dx[i]), "Inf * 0 is in the sum");
    struct nb_gradient g released_by(nb_gradient_release) = backward_gradient(&b);
    cr_expect(isnan(g.dgamma[2]) && isfinite(g.dgamma[1]), "and in one column");
    nb_gradient_row(&g, 1, dx);
    for (int i = 0; i < 4; i++) cr_expect(isfinite(dx[i]), "the other row knows nothing of it");
    problem_set(&b, 2, 1);
    backward_statistics(&b);
    backward_set_dy(&b, 3, INFINITY);
    dx_of_first_row(&b, dx);
    cr_expect(isinf(dx[0]) && isnan(dx[3]), "Inf - Inf in one element alone");
    b.c.op = NB_OP_PRMSNORM;
    b.c.k = 2;
    backward_statistics(&b);
    dx_of_first_row(&b, dx);
    cr_expect(isinf(dx[0]) && isfinite(dx[2]) && dx[3] == INFINITY, "beyond k no sum is used");
}

Test(gradient, refuses_to_run_where_subnormals_are_flushed) {
    struct problem b released_by(problem_free);
    struct nb_gradient g released_by(nb_gradient_release);
    backward_init(&b, NB_OP_RMSNORM, NB_F32, 1, 1);
    backward_statistics(&b);
    const struct nb_fp_state saved = nb_fp_state();
    struct nb_fp_state flushing = saved;
    if (!NB_FP_FLUSHES) cr_skip("nothing is known to flush here");
    flushing.control |= NB_FP_FLUSHES;
    nb_fp_state_set(flushing);
    const int result = nb_gradient_init(&g, &b.c, &b.in, b.mean, b.rstd);
    nb_fp_state_set(saved);
    cr_expect_eq(result, -1);
}
