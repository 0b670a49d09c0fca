// SPDX-License-Identifier: Apache-2.0
/* One element: an error e of a value of magnitude |v| is carried through the operations that follow the statistics, each
 * adding its rounding, to the store. The rounding of the store is half a spacing at the largest value it can see. */
#include "src/accuracy/bound.h"

#include <math.h>
#include <stdlib.h>

#include "src/accuracy/squash.h"
#include "src/core/dtype.h"
#include "src/core/log.h"

static const double single_u = 0x1p-24, single_eta = 0x1p-150;

/* tanhf of the C libraries and SIMD libraries in use stays below 4 ulp, which is 8 u at most. */
static const double tanh_error = 8 * 0x1p-24;

/* What the oracle itself and the evaluation in double below may be off. */
static const double slack = 1 + 0x1p-40;

void nb_bound_init(struct nb_bound *b, const struct nb_case *c, const struct nb_oracle *o, int64_t chain) {
    *b = (struct nb_bound){.c = c, .o = o, .chain = chain};
    b->folded = c->folded;
    nb_arithmetic_init(&b->arithmetic, c, chain);
    if (c->op != NB_OP_BATCHNORM || c->shape.layout != NB_NHWC) return;
    struct nb_statistics_error *channels = nb_alloc((unsigned long long)o->n_truth, sizeof *channels);
    for (int64_t i = 0; i < o->n_truth; i++) channels[i] = nb_bound_statistics(b, i);
    b->channels = channels;
}

void nb_bound_release(struct nb_bound *b) {
    free(b->channels);
    *b = (struct nb_bound){0};
}

struct nb_statistics_error nb_bound_statistics(const struct nb_bound *b, int64_t truth) {
    if (b->channels) return b->channels[truth];
    return nb_statistics_error(&b->arithmetic, b->c, &b->o->truth[truth], b->o->n_stats);
}

/* (1 - m) old + m new, the new variance times n / (n - 1): 6 roundings at most, of terms no larger than these. */
struct nb_running_error nb_bound_running(const struct nb_bound *b, int64_t channel) {
    struct nb_running_error e = {0, 0};
    if (b->c->mode == NB_INFERENCE) return e;
    const struct nb_row_truth *t = &b->o->truth[channel];
    const struct nb_statistics_error batch = nb_bound_statistics(b, channel);
    const double m = fabs(b->c->momentum), n = (double)b->o->n_stats, unbias = n / (n - 1), eta = 4 * single_eta;
    const double old_mean = fabs((double)b->o->in->running_mean[channel]), old_var = b->o->in->running_var[channel];
    const double u = 6 * b->arithmetic.op.u;
    e.mean = m * batch.mean + u * (old_mean + m * (fabs(t->mean) + batch.mean)) + eta + b->arithmetic.op.eta;
    e.var =
        m * unbias * batch.var + u * (fabs(old_var) + m * unbias * (t->var + batch.var)) + eta + b->arithmetic.op.eta;
    if (isinf(batch.var)) e.mean = INFINITY;
    return e;
}

/* A value of magnitude v that is off by at most e. */
struct approximate {
    double v, e;
};

/* Rounded by an operation in f32, or in x's dtype where all intermediates are; what may overflow on the way is lost. */
static struct approximate operation(struct approximate a, const struct nb_precision *p) {
    a.e += p->u * (a.v + a.e) + p->eta;
    if (!(a.v + a.e < p->overflow)) a.e = INFINITY;
    return a;
}

/* Stored in the dtype: the spacing grows at a power of two, which the value may pass. A narrow dtype is rounded from f32. */
static struct approximate stored(struct approximate a, const struct nb_bound *b) {
    const enum nb_dtype dtype = (enum nb_dtype)b->c->dtype;
    if (dtype != NB_F32) a.e += single_u * (a.v + a.e) + single_eta;
    if (b->c->flushes && a.v - a.e < NB_FLUSHED) a.e += NB_FLUSHED;
    a.e = a.v + a.e < nb_formats[dtype].overflow ? a.e + nb_ulp(a.v + a.e, dtype) / 2 : INFINITY;
    return a;
}

/* x - mean, times or over the scale, up to but not with the last rounding. */
static struct approximate normalized(const struct nb_bound *b, const struct nb_row_truth *t,
                                     const struct nb_statistics_error *row, double xhat) {
    const struct nb_precision *p = &b->arithmetic.op;
    const bool centres = nb_op_centres(b->c->op);
    struct approximate d = {xhat / t->scale, row->mean};
    if (centres) d = operation(d, p);
    return (struct approximate){xhat, xhat * row->scale + d.e * t->scale * (1 + row->scale)};
}

/* What is the same for all elements of a DyT. */
struct squasher {
    double alpha, of_alpha; /* what it is off as f32 */
    double u;               /* roundings of alpha * x, and of alpha in x's dtype */
};

/* The slope 1 - tanh^2 grows towards 0 by at most exp(2 off) on the way, and is 1 there. */
static struct approximate squashed(const struct nb_bound *b, const struct squasher *q, double x,
                                   const struct nb_squash *exact) {
    const double t = fabs(q->alpha * x), v = fabs(exact->tanh);
    if (isinf(t)) return (struct approximate){1, tanh_error};
    const double off = fabs(x) * q->of_alpha + q->u * t + b->arithmetic.op.eta;
    const double slope = exact->slope * (1 + 2 * off + 4 * off * off);
    return (struct approximate){v, off * (off < 0.5 && slope < 1 ? slope : 1) + tanh_error * v};
}

/* Gamma, or 1 + gamma as it is rounded. */
static struct approximate weight(const struct nb_bound *b, int64_t param, bool in_dtype) {
    if (!b->o->gamma) return (struct approximate){1, 0};
    if (!b->c->formula.weight_offset) return (struct approximate){fabs(b->o->gamma[param]), 0};
    struct approximate w = {fabs(1 + b->o->gamma[param]), 0};
    w = operation(w, &b->arithmetic.op);
    return in_dtype ? stored(w, b) : w;
}

static struct approximate times(struct approximate a, struct approximate w) {
    return (struct approximate){a.v * w.v, a.e * w.v + (a.v + a.e) * w.e};
}

/* From the normalized value, not yet rounded, to y. */
static double affine_tolerance(const struct nb_bound *b, struct approximate a, double y, int64_t param) {
    const enum nb_dtype dtype = (enum nb_dtype)b->c->dtype;
    const struct nb_precision *p = &b->arithmetic.op;
    const bool cast_before = b->c->formula.cast == NB_CAST_BEFORE && dtype != NB_F32;
    if (!b->o->gamma) return stored(a, b).e;
    a = cast_before ? stored(a, b) : operation(a, p);
    a = times(a, weight(b, param, cast_before));
    if (!b->o->beta) return stored(a, b).e;
    a = cast_before ? stored(a, b) : operation(a, p);
    a.v = fabs(y);
    return stored(a, b).e;
}

/* y = a x + c, c = beta - a mean: the terms are rounded before they cancel. |a x| <= |a mean| + |y - beta|. */
static double folding(const struct nb_bound *b, const struct nb_row_truth *t, double y, double beta, double g) {
    const double shift = fabs(g) * t->scale * fabs(t->mean);
    return 2 * b->arithmetic.op.u * (2 * shift + fabs(y - beta) + fabs(beta));
}

static double element_tolerance(const struct nb_bound *b, const struct nb_row_truth *t,
                                const struct nb_statistics_error *row, double y, int64_t param) {
    const double beta = b->o->beta ? b->o->beta[param] : 0;
    double g = b->o->gamma ? b->o->gamma[param] : 1;
    if (b->o->gamma && b->c->formula.weight_offset) g += 1;
    const double xhat = g != 0 ? fabs((y - beta) / g) : 0;
    double tolerance = affine_tolerance(b, normalized(b, t, row, xhat), y, param);
    if (b->folded) tolerance += folding(b, t, y, beta, g);
    return tolerance * slack;
}

/* Infinite where the store may overflow, or the exact value is none. */
static double limited(const struct nb_bound *b, double y, double tolerance, enum nb_loss *loss) {
    enum nb_loss why = NB_LOSS_NONE;
    if (!isfinite(y))
        why = NB_LOSS_INPUT_NOT_FINITE;
    else if (!(fabs(y) + tolerance < nb_formats[b->c->dtype].overflow))
        why = NB_LOSS_OUTPUT_OVERFLOW;
    if (why == NB_LOSS_NONE) return tolerance;
    if (*loss == NB_LOSS_NONE) *loss = why;
    return INFINITY;
}

enum { CHUNK = 256 }; /* elements widened at once: 2 KB of stack */

static enum nb_loss dyt_row(const struct nb_bound *b, int64_t row, const double *y, double *tolerance) {
    const struct nb_inputs *in = b->o->in;
    const struct nb_squash *exact = nb_oracle_squash(b->o, row);
    const double alpha = b->c->alpha, u = b->arithmetic.op.u;
    const struct squasher q = {alpha, fabs(nb_round_to(alpha, NB_F32) - alpha), u > single_u ? 2 * u : u};
    enum nb_loss loss = NB_LOSS_NONE;
    double x[CHUNK];
    for (int64_t col = 0; col < in->cols; col += CHUNK) {
        const int64_t n = in->cols - col < CHUNK ? in->cols - col : CHUNK;
        nb_truth_widen(in->x, row * in->cols + col, n, in->dtype, x);
        for (int64_t i = col; i < col + n; i++) {
            const struct approximate a = squashed(b, &q, x[i - col], &exact[i]);
            tolerance[i] = limited(b, y[i], affine_tolerance(b, a, y[i], i) * slack, &loss);
        }
    }
    return loss;
}

static enum nb_loss exact_row(const struct nb_bound *b, double *tolerance) {
    for (int64_t i = 0; i < b->o->in->cols; i++) tolerance[i] = 0;
    return NB_LOSS_NONE;
}

static double normalized_tolerance(const struct nb_bound *b, const struct nb_row_truth *t,
                                   const struct nb_statistics_error *error, double y, int64_t param,
                                   enum nb_loss *loss) {
    if (error->loss == NB_LOSS_NONE) return limited(b, y, element_tolerance(b, t, error, y, param), loss);
    if (*loss == NB_LOSS_NONE) *loss = error->loss;
    return INFINITY;
}

enum nb_loss nb_bound_row(const struct nb_bound *b, int64_t row, const double *y, double *tolerance) {
    if (b->c->op == NB_OP_COPY) return exact_row(b, tolerance);
    if (b->c->op == NB_OP_DYT) return dyt_row(b, row, y, tolerance);
    const int64_t cols = b->o->in->cols;
    enum nb_loss loss = NB_LOSS_NONE;
    if (b->channels) {
        for (int64_t i = 0; i < cols; i++)
            tolerance[i] = normalized_tolerance(b, &b->o->truth[i], &b->channels[i], y[i], i, &loss);
        return loss;
    }
    const struct nb_row_truth *t = nb_oracle_truth(b->o, row, 0);
    const int64_t channel = t - b->o->truth;
    const struct nb_statistics_error error = nb_bound_statistics(b, channel);
    const bool by_channel = b->c->op == NB_OP_BATCHNORM;
    for (int64_t i = 0; i < cols; i++)
        tolerance[i] = normalized_tolerance(b, t, &error, y[i], by_channel ? channel : i, &loss);
    return loss;
}
