// SPDX-License-Identifier: Apache-2.0
/* The sums that all elements of a row share are taken once, so that a row costs two sweeps. */
#include "src/lab/stress/input_noise.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"

static double weight_of(const struct nb_oracle *o, int64_t i) {
    if (!o->gamma) return 1;
    return fabs(o->gamma[i] + (o->c->formula.weight_offset ? 1 : 0));
}

/* -2 N dscale/d(sum of squares), N times: how the scale follows the squares. */
static double pull(const struct nb_case *c, const struct nb_row_truth *t) {
    const double root = sqrt(t->var);
    switch (c->formula.eps_place) {
    case NB_EPS_INSIDE:
        return t->scale * t->scale * t->scale;
    case NB_EPS_OUTSIDE:
        return root > 0 ? t->scale * t->scale / root : 0;
    default:
        return root > c->eps ? t->scale * t->scale * t->scale : 0;
    }
}

static void of_tanh(const struct nb_oracle *o, const double *v, double *noise) {
    for (int64_t i = 0; i < o->in->cols; i++) {
        const double slope = 1 - tanh(o->c->alpha * v[i]) * tanh(o->c->alpha * v[i]);
        noise[i] = weight_of(o, i) * fabs(o->c->alpha) * slope * nb_ulp(v[i], o->in->dtype) / 2;
    }
}

static void of_norm(const struct nb_oracle *o, int64_t row, const double *v, double *noise) {
    const struct nb_row_truth *t = nb_oracle_truth(o, row, 0);
    const int64_t seen = o->n_stats; /* elements that the statistics see */
    const bool centred = nb_op_centres(o->c->op);
    const double n = (double)seen, divisor = o->c->op == NB_OP_L2NORM ? 1 : n, q = pull(o->c, t) / divisor;
    const double mean = centred ? t->mean : 0, mean_share = centred ? t->scale / n : 0;
    double sum_h = 0, sum_ch = 0, sum_cch = 0; /* of h^2, c h^2, c^2 h^2 */
    for (int64_t i = 0; i < seen; i++) {
        const double h = nb_ulp(v[i], o->in->dtype) / 2, c = v[i] - mean;
        sum_h += h * h;
        sum_ch += c * h * h;
        sum_cch += c * c * h * h;
    }
    for (int64_t i = 0; i < o->in->cols; i++) {
        const double c = v[i] - mean, h = nb_ulp(v[i], o->in->dtype) / 2, p = c * q;
        const double own = i < seen ? fabs(t->scale - mean_share - c * p) : t->scale;
        const double others = mean_share * mean_share * sum_h + 2 * mean_share * p * sum_ch + p * p * sum_cch;
        const double beside = i < seen ? (mean_share + c * p) * h : 0;
        noise[i] = weight_of(o, i) * (own * h + sqrt(fmax(others - beside * beside, 0) / 3));
    }
}

void nb_input_noise(const struct nb_oracle *o, int64_t row, double *noise) {
    double *v = nb_alloc((unsigned long long)o->in->cols, sizeof *v);
    nb_truth_row(o->c, o->in, row, v);
    if (o->c->op == NB_OP_DYT)
        of_tanh(o, v, noise);
    else
        of_norm(o, row, v, noise);
    free(v);
}

void nb_row_magnitude(const struct nb_oracle *o, int64_t row, const double *y, double *magnitude) {
    double shared = 0;
    if (nb_op_centres(o->c->op)) {
        const struct nb_row_truth *t = nb_oracle_truth(o, row, 0);
        shared = sqrt(t->var) * t->scale;
    }
    for (int64_t i = 0; i < o->in->cols; i++) {
        magnitude[i] = fmax(fabs(y[i]), shared * weight_of(o, i));
        if (o->beta) magnitude[i] = fmax(magnitude[i], fabs(o->beta[i]));
    }
}
