// SPDX-License-Identifier: Apache-2.0
/* Plain f32 arithmetic; the build forbids contraction to FMA. */
#include "src/accuracy/reference.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"

enum { LANES = 16 };

struct nb_reference {
    const struct nb_oracle *o;
    float *v;           /* a row, or a channel's elements one after another */
    float *mean, *rstd; /* BatchNorm: of each channel */
};

static float sum_of(const float *v, int64_t n) {
    float lanes[LANES] = {0};
    for (int64_t i = 0; i < n; i++) lanes[i % LANES] += v[i];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) lanes[j] += lanes[j + half];
    return lanes[0];
}

static float squares_of(const float *v, int64_t n, float centre) {
    float lanes[LANES] = {0};
    for (int64_t i = 0; i < n; i++) lanes[i % LANES] += (v[i] - centre) * (v[i] - centre);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) lanes[j] += lanes[j + half];
    return lanes[0];
}

static float reciprocal(const struct nb_case *c, float var) {
    const float eps = (float)c->eps;
    if (c->formula.eps_place == NB_EPS_OUTSIDE) return 1 / (sqrtf(var) + eps);
    if (c->formula.eps_place == NB_EPS_CLAMP) return 1 / (sqrtf(var) > eps ? sqrtf(var) : eps);
    return 1 / sqrtf(var + eps);
}

static void statistics(const struct nb_case *c, const float *v, int64_t n, float *mean, float *rstd) {
    *mean = nb_op_centres(c->op) ? sum_of(v, n) / (float)n : 0;
    const float squares = squares_of(v, n, *mean);
    *rstd = reciprocal(c, c->op == NB_OP_L2NORM ? squares : squares / (float)n);
}

static float x_at(const struct nb_inputs *in, int64_t row, int64_t col) {
    return (float)nb_get(in->x, row * in->cols + col, in->dtype);
}

/* The elements of one channel, in the order of rows. */
static int64_t gather(const struct nb_reference *r, int64_t channel) {
    const struct nb_inputs *in = r->o->in;
    const struct nb_shape *shape = &r->o->c->shape;
    int64_t n = 0;
    if (shape->layout == NB_NHWC) {
        for (int64_t row = 0; row < in->rows; row++) r->v[n++] = x_at(in, row, channel);
        return n;
    }
    for (int64_t row = channel; row < in->rows; row += shape->c)
        for (int64_t col = 0; col < in->cols; col++) r->v[n++] = x_at(in, row, col);
    return n;
}

static void all_channels(struct nb_reference *r) {
    const struct nb_case *c = r->o->c;
    const struct nb_inputs *in = r->o->in;
    for (int64_t i = 0; i < r->o->n_truth; i++) {
        if (c->mode == NB_INFERENCE) {
            r->mean[i] = in->running_mean[i];
            r->rstd[i] = reciprocal(c, in->running_var[i]);
            continue;
        }
        const int64_t n = gather(r, i);
        statistics(c, r->v, n, &r->mean[i], &r->rstd[i]);
    }
}

struct nb_reference *nb_reference_new(const struct nb_oracle *o) {
    struct nb_reference *r = nb_alloc(1, sizeof *r);
    const bool by_channel = o->c->op == NB_OP_BATCHNORM;
    const int64_t n = by_channel && o->n_stats > o->in->cols ? o->n_stats : o->in->cols;
    r->o = o;
    r->v = nb_alloc((unsigned long long)n, sizeof *r->v);
    if (!by_channel) return r;
    r->mean = nb_alloc((unsigned long long)o->n_truth, sizeof *r->mean);
    r->rstd = nb_alloc((unsigned long long)o->n_truth, sizeof *r->rstd);
    all_channels(r);
    return r;
}

void nb_reference_free(struct nb_reference *reference) {
    if (!reference) return;
    free(reference->v);
    free(reference->mean);
    free(reference->rstd);
    free(reference);
}

static float affine(const struct nb_oracle *o, float xhat, int64_t param) {
    if (!o->gamma) return xhat;
    const float gamma = (float)o->gamma[param];
    const float y = xhat * (o->c->formula.weight_offset ? 1 + gamma : gamma);
    return o->beta ? y + (float)o->beta[param] : y;
}

/* What is normalized: of add_* the sum in f32, rounded where the formula says so. */
static void read_row(const struct nb_reference *r, int64_t row) {
    const struct nb_case *c = r->o->c;
    const struct nb_inputs *in = r->o->in;
    const bool adds = nb_op_adds(c->op);
    for (int64_t i = 0; i < in->cols; i++) {
        r->v[i] = x_at(in, row, i);
        if (!adds) continue;
        r->v[i] += (float)nb_get(in->residual, row * in->cols + i, in->dtype);
        if (c->formula.round_sum) r->v[i] = (float)nb_round_to(r->v[i], in->dtype);
    }
}

void nb_reference_row(struct nb_reference *r, int64_t row, void *y) {
    const struct nb_oracle *o = r->o;
    const struct nb_case *c = o->c;
    float mean = 0, rstd = 1;
    read_row(r, row);
    if (c->op != NB_OP_BATCHNORM && c->op != NB_OP_DYT) statistics(c, r->v, o->n_stats, &mean, &rstd);
    for (int64_t i = 0; i < o->in->cols; i++) {
        int64_t param = i;
        if (c->op == NB_OP_BATCHNORM) {
            param = nb_oracle_truth(o, row, i) - o->truth;
            mean = r->mean[param];
            rstd = r->rstd[param];
        }
        const float xhat = c->op == NB_OP_DYT ? tanhf((float)c->alpha * r->v[i]) : (r->v[i] - mean) * rstd;
        nb_set(y, i, o->in->dtype, affine(o, xhat, param));
    }
}
