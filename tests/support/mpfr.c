// SPDX-License-Identifier: Apache-2.0
/* Every op once more in 700 bits, written without a look at the oracle. */
#include "tests/support/mpfr.h"

#include <criterion/criterion.h>
#include <math.h>
#include <mpfr.h>
#include <stdlib.h>

#include "src/accuracy/oracle.h"
#include "src/core/dtype.h"

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
    if (p->c.op != NB_OP_ADD_RMSNORM && p->c.op != NB_OP_ADD_LAYERNORM) return x;
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
    const bool centred = op == NB_OP_LAYERNORM || op == NB_OP_ADD_LAYERNORM || op == NB_OP_BATCHNORM;
    int64_t n = op == NB_OP_BATCHNORM ? p->c.shape.n * p->c.shape.hw : op == NB_OP_PRMSNORM ? p->c.k : p->c.shape.cols;
    mpfr_set_zero(e->mean, 1);
    mpfr_set_zero(e->var, 1);
    if (op == NB_OP_BATCHNORM && p->c.mode == NB_INFERENCE) {
        mpfr_set_flt(e->mean, p->in.running_mean[channel], MPFR_RNDN);
        mpfr_set_flt(e->var, p->in.running_var[channel], MPFR_RNDN);
        return;
    }
    for (int64_t j = 0; centred && j < n; j++)
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

double worst_deviation_from_mpfr(const struct problem *p) {
    struct nb_oracle o;
    struct exact e;
    exact_init(&e);
    cr_assert_eq(nb_oracle_init(&o, &p->c, &p->in), 0);
    double *y = calloc((size_t)p->c.shape.cols, sizeof *y), worst = 0;
    for (int64_t r = 0; r < p->c.shape.rows; r++) {
        nb_oracle_row(&o, r, y);
        worst = fmax(worst, worst_of_row(&e, p, &o, r, y));
    }
    free(y);
    nb_oracle_release(&o);
    exact_clear(&e);
    return worst;
}
