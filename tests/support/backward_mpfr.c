// SPDX-License-Identifier: Apache-2.0
/* The formulas of a backward call (kernels/kernel.h) once more in 700 bits, written without a look at the oracle of gradients. */
#include <criterion/criterion.h>
#include <math.h>
#include <mpfr.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "tests/support/backward.h"

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
static int64_t stat_of(const struct backward *b, int64_t row, int64_t col) {
    const struct nb_shape *s = &b->p.c.shape;
    return b->p.c.op != NB_OP_BATCHNORM ? row : s->layout == NB_NHWC ? col : row % s->c;
}
static int64_t param_of(const struct backward *b, int64_t row, int64_t col) {
    return b->p.c.op == NB_OP_BATCHNORM ? stat_of(b, row, col) : col;
}

/* Rows that have elements of these statistics: first <= row < end. */
struct range {
    int64_t first, end;
};
static struct range rows_of(const struct backward *b, int64_t stat) {
    if (b->p.c.op == NB_OP_BATCHNORM) return (struct range){0, b->p.in.rows};
    return (struct range){stat, stat + 1};
}

static bool is_centred(const struct backward *b) {
    const uint32_t op = b->p.c.op;
    return op == NB_OP_LAYERNORM || op == NB_OP_ADD_LAYERNORM || op == NB_OP_BATCHNORM;
}

/* Sets w, g = dy w and xhat (DyT: tanh) of an element. */
static void set_element(struct exact *e, const struct backward *b, int64_t row, int64_t col) {
    const struct nb_inputs *in = &b->p.in;
    const struct nb_formula *f = &b->p.c.formula;
    const int64_t i = row * in->cols + col, param = param_of(b, row, col), stat = stat_of(b, row, col);
    mpfr_set_ui(e->w, 1, MPFR_RNDN);
    if (f->affine != NB_AFFINE_NONE) {
        const bool narrow = f->param == NB_PARAM_X;
        mpfr_set_d(e->w, narrow ? nb_get(in->gamma_x, param, in->dtype) : (double)in->gamma_f32[param], MPFR_RNDN);
        if (f->weight_offset) mpfr_add_ui(e->w, e->w, 1, MPFR_RNDN);
    }
    mpfr_mul_d(e->g, e->w, nb_get(in->dy, i, in->dtype), MPFR_RNDN);
    mpfr_set_d(e->xhat, nb_get(in->x, i, in->dtype), MPFR_RNDN);
    if (b->p.c.op == NB_OP_DYT) {
        mpfr_mul_d(e->xhat, e->xhat, b->p.c.alpha, MPFR_RNDN);
        mpfr_tanh(e->xhat, e->xhat, MPFR_RNDN);
        return;
    }
    if (is_centred(b)) mpfr_sub_d(e->xhat, e->xhat, b->mean[stat], MPFR_RNDN);
    mpfr_mul_d(e->xhat, e->xhat, b->rstd[stat], MPFR_RNDN);
}

static bool is_coupled(const struct backward *b, int64_t col) {
    if (b->p.c.op == NB_OP_BATCHNORM) return b->p.c.mode == NB_TRAINING;
    return b->p.c.op != NB_OP_PRMSNORM || col < b->p.c.k;
}

/* The two means of the row or channel that `stat` stands for. */
static void set_means(struct exact *e, const struct backward *b, int64_t stat) {
    const struct range rows = rows_of(b, stat);
    mpfr_set_zero(e->sum_g, 1);
    mpfr_set_zero(e->sum_gx, 1);
    int64_t n = 0;
    for (int64_t row = rows.first; row < rows.end; row++)
        for (int64_t col = 0; col < b->p.in.cols; col++) {
            if (stat_of(b, row, col) != stat) continue;
            set_element(e, b, row, col);
            mpfr_add(e->sum_g, e->sum_g, e->g, MPFR_RNDN);
            mpfr_mul(e->t, e->g, e->xhat, MPFR_RNDN);
            mpfr_add(e->sum_gx, e->sum_gx, e->t, MPFR_RNDN);
            n++;
        }
    if (b->p.c.op == NB_OP_PRMSNORM) n = b->p.c.k;
    if (b->p.c.op != NB_OP_L2NORM) mpfr_div_si(e->sum_gx, e->sum_gx, n, MPFR_RNDN);
    mpfr_div_si(e->sum_g, e->sum_g, n, MPFR_RNDN);
    if (!is_centred(b)) mpfr_set_zero(e->sum_g, 1);
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
static double deviation_of_dx(struct exact *e, const struct backward *b, int64_t row, int64_t col, double got) {
    const struct nb_inputs *in = &b->p.in;
    const bool adds = b->p.c.op == NB_OP_ADD_RMSNORM || b->p.c.op == NB_OP_ADD_LAYERNORM;
    set_element(e, b, row, col);
    mpfr_set_zero(e->t, 1);
    mpfr_set_zero(e->size, 1);
    if (b->p.c.op == NB_OP_DYT) {
        mpfr_sqr(e->xhat, e->xhat, MPFR_RNDN);
        mpfr_ui_sub(e->xhat, 1, e->xhat, MPFR_RNDN);
        mpfr_mul(e->t, e->g, e->xhat, MPFR_RNDN);
        mpfr_mul_d(e->t, e->t, b->p.c.alpha, MPFR_RNDN);
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
    if (adds) mpfr_add_d(e->t, e->t, nb_get(in->dresidual_out, row * in->cols + col, in->dtype), MPFR_RNDN);
    return deviation(e, got);
}

static double worst_of_dx(struct exact *e, const struct backward *b, const struct nb_gradient *g) {
    const struct nb_shape *s = &b->p.c.shape;
    double *dx = calloc((size_t)(s->rows * s->cols), sizeof *dx), worst = 0;
    for (int64_t row = 0; row < s->rows; row++) nb_gradient_row(g, row, dx + row * s->cols);
    for (int64_t stat = 0; stat < b->n_stats; stat++) {
        if (b->p.c.op != NB_OP_DYT) set_means(e, b, stat);
        const struct range rows = rows_of(b, stat);
        for (int64_t row = rows.first; row < rows.end; row++)
            for (int64_t col = 0; col < s->cols; col++)
                if (stat_of(b, row, col) == stat)
                    worst = fmax(worst, deviation_of_dx(e, b, row, col, dx[row * s->cols + col]));
    }
    free(dx);
    return worst;
}

/* Sum of dy xhat (dgamma), of dy, or of dy w x (1 - tanh^2) over all elements (dalpha). */
enum sum_kind { DGAMMA, DBETA, DALPHA };

static double deviation_of_sum(struct exact *e, const struct backward *b, enum sum_kind kind, int64_t param,
                               double got) {
    const struct nb_inputs *in = &b->p.in;
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
    if (b->p.c.op == NB_OP_DYT && kind != DBETA) mpfr_mul_d(e->size, e->size, 0x1p40, MPFR_RNDN);
    return deviation(e, got);
}

double worst_gradient_deviation(const struct backward *b) {
    struct nb_gradient g;
    struct exact e;
    exact_init(&e);
    backward_gradient(&g, b);
    double worst = worst_of_dx(&e, b, &g);
    for (int64_t i = 0; g.dgamma && i < g.n_params; i++) {
        worst = fmax(worst, deviation_of_sum(&e, b, DGAMMA, i, g.dgamma[i]));
        if (g.dbeta) worst = fmax(worst, deviation_of_sum(&e, b, DBETA, i, g.dbeta[i]));
    }
    if (b->p.c.op == NB_OP_DYT) worst = fmax(worst, deviation_of_sum(&e, b, DALPHA, 0, g.dalpha));
    nb_gradient_release(&g);
    exact_clear(&e);
    return worst;
}
