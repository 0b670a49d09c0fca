// SPDX-License-Identifier: Apache-2.0
/* Two evaluations of each element. The plain one, in double with exact statistics rounded once, has a few 2^-53 of error
 * relative to gamma * xhat, which is enough wherever beta does not cancel it. Elsewhere the careful one carries pairs of
 * doubles through to the end. */
#include "src/accuracy/oracle.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/accuracy/truth.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/twofold.h"

/* By what the arithmetic does, not by what fegetround() says: on x86 that asks the x87 unit. The volatile operands keep the
 * compiler from answering for the machine. */
int nb_oracle_environment(void) {
    volatile double smallest_normal = DBL_MIN, subnormal = 0x1p-1074, one = 1, tiny = 0x1p-60;
    if (smallest_normal / 2 == 0 || subnormal * 0x1p60 == 0)
        return nb_error(
            "subnormal numbers are flushed to zero in this thread (MXCSR FTZ or DAZ is set, as -ffast-math in "
            "any linked object does): exact results cannot be computed; clear the mode before the call");
    if (one + tiny != one || one - tiny != one)
        return nb_error("the rounding mode of this thread is not to nearest: exact results cannot be computed; call "
                        "fesetround(FE_TONEAREST) before");
    return 0;
}

static double *widen_params(const struct nb_case *c, const float *f32, const void *stored, int64_t n) {
    double *wide = nb_alloc((unsigned long long)n, sizeof *wide);
    for (int64_t i = 0; i < n; i++)
        wide[i] = c->formula.param == NB_PARAM_X ? nb_get(stored, i, (enum nb_dtype)c->dtype) : (double)f32[i];
    return wide;
}

int nb_oracle_init(struct nb_oracle *o, const struct nb_case *c, const struct nb_inputs *in) {
    *o = (struct nb_oracle){.c = c, .in = in, .n_params = in->n_params};
    if (nb_oracle_environment() != 0) return -1;
    o->n_stats = nb_truth_elements(c);
    o->n_truth = c->op == NB_OP_BATCHNORM ? c->shape.c : in->rows;
    o->truth = nb_alloc((unsigned long long)o->n_truth, sizeof *o->truth);
    if (c->op == NB_OP_DYT) o->squashed = nb_squashed_row_new(in->cols);
    if (c->formula.affine != NB_AFFINE_NONE) o->gamma = widen_params(c, in->gamma_f32, in->gamma_x, in->n_params);
    if (c->formula.affine == NB_AFFINE_GAMMA_BETA) o->beta = widen_params(c, in->beta_f32, in->beta_x, in->n_params);
    nb_truth_fill(o->truth, o->n_truth, c, in);
    return 0;
}

static int64_t channel_of(const struct nb_case *c, int64_t row, int64_t col) {
    return c->shape.layout == NB_NHWC ? col : row % c->shape.c;
}

const struct nb_row_truth *nb_oracle_truth(const struct nb_oracle *o, int64_t row, int64_t col) {
    return &o->truth[o->c->op == NB_OP_BATCHNORM ? channel_of(o->c, row, col) : row];
}

/* gamma, or 1 + gamma, as a pair. */
static struct nb_twofold weight(const struct nb_oracle *o, int64_t param) {
    if (!o->gamma) return nb_twofold_of(1.0);
    if (!o->c->formula.weight_offset) return nb_twofold_of(o->gamma[param]);
    return nb_two_sum(1.0, o->gamma[param]);
}

static double careful(const struct nb_oracle *o, const struct nb_row_truth *t, double x, int64_t param) {
    struct nb_twofold v = nb_twofold_sub(nb_twofold_of(x), (struct nb_twofold){t->mean, t->mean_lo});
    v = nb_twofold_mul(v, (struct nb_twofold){t->scale, t->scale_lo});
    v = nb_twofold_mul(v, weight(o, param));
    v = nb_twofold_add(v, nb_twofold_of(o->beta[param]));
    return v.hi + v.lo;
}

/* Below an eighth of beta, what was cancelled is worth three bits or more. */
static double affine(const struct nb_oracle *o, const struct nb_row_truth *t, double x, double xhat, int64_t param) {
    if (!o->gamma) return xhat;
    struct nb_twofold g = weight(o, param);
    double y = xhat * (g.hi + g.lo);
    if (!o->beta) return y;
    y += o->beta[param];
    bool cancelled = fabs(y) < fabs(o->beta[param]) / 8;
    return cancelled && t && isfinite(t->scale) ? careful(o, t, x, param) : y;
}

static double element(const struct nb_oracle *o, const struct nb_row_truth *t, double x, int64_t param) {
    double d = (x - t->mean) - t->mean_lo;
    return affine(o, t, x, d * t->scale, param);
}

/* Where beta cancels, tanh in long double: on x86 to 2^-63. */
static double dyt_element(const struct nb_oracle *o, double x, double xhat, int64_t param) {
    const double y = affine(o, NULL, x, xhat, param);
    if (!o->beta || !(fabs(y) < fabs(o->beta[param]) / 8)) return y;
    const long double exact = tanhl((long double)o->c->alpha * (long double)x);
    const struct nb_twofold squashed = {(double)exact, (double)(exact - (double)exact)};
    struct nb_twofold v = nb_twofold_add(nb_twofold_mul(squashed, weight(o, param)), nb_twofold_of(o->beta[param]));
    return v.hi + v.lo;
}

void nb_oracle_row(const struct nb_oracle *o, int64_t row, double *y) {
    const struct nb_case *c = o->c;
    const int64_t cols = o->in->cols;
    nb_truth_row(c, o->in, row, y);
    if (c->op == NB_OP_COPY) return;
    if (c->op == NB_OP_DYT) {
        const struct nb_squash *squash = nb_oracle_squash(o, row);
        for (int64_t i = 0; i < cols; i++) y[i] = dyt_element(o, y[i], squash[i].tanh, i);
        return;
    }
    const bool by_channel = c->op == NB_OP_BATCHNORM, by_column = by_channel && c->shape.layout == NB_NHWC;
    const struct nb_row_truth *t = nb_oracle_truth(o, row, 0);
    const int64_t channel = t - o->truth;
    for (int64_t i = 0; i < cols; i++)
        y[i] = element(o, by_column ? &o->truth[i] : t, y[i], by_channel && !by_column ? channel : i);
}

const struct nb_squash *nb_oracle_squash(const struct nb_oracle *o, int64_t row) {
    return nb_squashed_row(o->squashed, o->c->alpha, o->in, row);
}

void nb_oracle_residual_row(const struct nb_oracle *o, int64_t row, double *sum) {
    for (int64_t i = 0; i < o->in->cols; i++) sum[i] = nb_truth_stored_sum(o->in, row * o->in->cols + i);
}

void nb_oracle_running(const struct nb_oracle *o, double *mean, double *var) {
    const double m = o->c->momentum, n = (double)o->n_stats;
    for (int64_t i = 0; i < o->n_truth; i++) {
        const struct nb_row_truth *t = &o->truth[i];
        if (o->c->mode == NB_INFERENCE) {
            mean[i] = o->in->running_mean[i];
            var[i] = o->in->running_var[i];
            continue;
        }
        mean[i] = (1 - m) * o->in->running_mean[i] + m * t->mean;
        var[i] = (1 - m) * o->in->running_var[i] + m * (t->var * (n / (n - 1)));
    }
}

void nb_oracle_release(struct nb_oracle *o) {
    free(o->truth);
    free(o->squashed);
    free(o->gamma);
    free(o->beta);
    *o = (struct nb_oracle){0};
}
