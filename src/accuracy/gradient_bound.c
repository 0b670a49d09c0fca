// SPDX-License-Identifier: Apache-2.0
/* One element of dx: three terms, each with its own error and the roundings that any order of evaluation gives it, and the store. Errors
 * are added up as what they are, not as differences of large numbers. */
#include "src/accuracy/gradient_bound.h"

#include <math.h>
#include <stdlib.h>

#include "src/accuracy/truth.h"
#include "src/core/dtype.h"
#include "src/core/log.h"

static const double single_u = 0x1p-24, single_eta = 0x1p-150;

/* What the exact gradient itself and the evaluation in double may be off: (1 + u)^k - 1 has 2^-53 / u of it, 2^-29. */
static const double slack = 1 + 0x1p-26;

/* Roundings of a term before the last operation, which the store has. dy * w is multiplied by rstd and added twice, of which one is
 * the last; mean(g) is folded with rstd besides; xhat * mean(gx) may be a product of its own, be folded twice (rstd^2 mean(gx) as the
 * coefficient of x), and is added twice. */
enum { ON_G = 2, ON_MEAN_G = 3, ON_PULL = 5 };

/* Stored in the dtype a value of magnitude v that is off by e: the spacing grows at a power of two, which the value may pass. A narrow
 * dtype is rounded from f32. */
static double stored(const struct nb_gradient_bound *b, double v, double e) {
    const enum nb_dtype dtype = (enum nb_dtype)b->c->dtype;
    if (dtype != NB_F32) e += single_u * (v + e) + single_eta;
    e = (e + b->rows.flushed) * slack;
    return v + e < nb_formats[dtype].overflow ? e + nb_ulp(v + e, dtype) / 2 : INFINITY;
}

/* Infinite where the exact value is none, or may overflow. */
static double limited(double dx, double tolerance, enum nb_loss why, enum nb_loss *loss) {
    if (!isfinite(dx)) why = NB_LOSS_INPUT_NOT_FINITE;
    if (why == NB_LOSS_NONE && isinf(tolerance)) why = NB_LOSS_OUTPUT_OVERFLOW;
    if (why == NB_LOSS_NONE) return tolerance;
    if (*loss == NB_LOSS_NONE) *loss = why;
    return INFINITY;
}

/* ---- normalizations ---------------------------------------------------------------------------------------------------- */

/* What is the same for all elements of a row (NHWC: of a column). */
struct nb_gradient_shared {
    struct nb_row_gradient_error e;
    double mean, rstd, mean_g, mean_gx; /* the last two as magnitudes */
    double on_g, on_mean_g, on_pull;
    double largest_factor; /* max(1, rstd) */
    /* In eta, to subnormals: of every element, and for each xhat. Factors of rstd, of xhat, of x - mean (coefficients c = rstd^2
     * mean(gx)). */
    double lost, lost_xhat;
};

static void share(struct nb_gradient_shared *s, const struct nb_gradient_bound *b, int64_t stat, bool coupled) {
    const struct nb_gradient *g = b->g;
    *s = (struct nb_gradient_shared){.e = nb_row_gradient_error(&b->rows, stat, coupled),
                                     .mean = g->mean ? g->mean[stat] : 0,
                                     .rstd = g->rstd[stat]};
    s->on_g = b->on_g + s->e.of_rstd * (1 + b->on_g);
    s->on_mean_g = b->on_mean_g + s->e.of_rstd * (1 + b->on_mean_g);
    s->on_pull = b->on_pull + s->e.of_rstd * (1 + b->on_pull);
    if (coupled) {
        s->mean_g = fabs(g->rows[stat].mean_g);
        s->mean_gx = fabs(g->rows[stat].mean_gx);
    }
    s->largest_factor = s->rstd > 1 ? s->rstd : 1;
    s->lost = 2 * s->rstd + 3;
    s->lost_xhat = 1 + (1 + s->mean_gx) / s->rstd;
}

struct magnitudes {
    double dy, weight, xhat, past, dx;
};

/* A gradient that comes past the norm costs another rounding, of the norm's own. */
static double normalized(const struct nb_gradient_bound *b, const struct nb_gradient_shared *s,
                         const struct magnitudes *m) {
    const struct nb_precision *p = &b->rows.op;
    const double u = p->u, g = m->dy * m->weight;
    const double of_g = g * b->rows.of_g + p->eta + b->rows.flushed * (m->weight + m->dy);
    const double of_xhat = m->xhat * b->rows.of_xhat + s->e.xhat.element;
    const double of_pull = m->xhat * s->e.mean_gx + of_xhat * (s->mean_gx + s->e.mean_gx), pull = m->xhat * s->mean_gx;
    const double terms = (of_g + g * s->on_g + of_g * s->on_g) +
                         (s->e.mean_g + (s->mean_g + s->e.mean_g) * s->on_mean_g) +
                         (of_pull + (pull + of_pull) * s->on_pull);
    const double largest = (g + s->mean_g + pull + terms) * s->largest_factor + m->past;
    if (!(largest < p->overflow)) return INFINITY;
    double e = s->rstd * terms + p->eta * (s->lost + m->xhat * s->lost_xhat);
    if (m->past > 0) e += u * (m->past + m->dx + e) + b->rows.flushed;
    return stored(b, m->dx, e);
}

enum { CHUNK = 256 }; /* elements widened at once: 6 KB of stack */

static void bound_chunk(const struct nb_gradient_bound *b, int64_t row, int64_t col, int64_t n, const double *dx,
                        double *tolerance, enum nb_loss *loss) {
    const struct nb_gradient *g = b->g;
    const struct nb_inputs *in = g->in;
    const struct nb_gradient_place at = nb_gradient_place_of(b->c, row);
    const int64_t first = row * in->cols + col;
    double x[CHUNK], dy[CHUNK], past[CHUNK] = {0};
    struct nb_gradient_shared own;
    const struct nb_gradient_shared *s = &own;
    nb_truth_widen(in->x, first, n, in->dtype, x);
    nb_truth_widen(in->dy, first, n, in->dtype, dy);
    if (in->dresidual_out && nb_op_adds(b->c->op)) nb_truth_widen(in->dresidual_out, first, n, in->dtype, past);
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = col + i;
        if (b->channels)
            s = &b->channels[at.stat + place * at.stat_step];
        else if (i == 0 || place == at.n_coupled)
            share(&own, b, at.stat, place < at.n_coupled);
        const struct magnitudes m = {.dy = fabs(dy[i]),
                                     .weight = fabs(g->weight[at.param + place * at.param_step]),
                                     .xhat = fabs((x[i] - s->mean) * s->rstd),
                                     .past = fabs(past[i]),
                                     .dx = fabs(dx[i])};
        const double allowed = s->e.loss == NB_LOSS_NONE ? normalized(b, s, &m) : (double)INFINITY;
        tolerance[i] = limited(dx[i], allowed, s->e.loss, loss);
    }
}

/* ---- DyT ----------------------------------------------------------------------------------------------------------------- */

/* What is the same for all elements. */
struct squasher {
    double alpha, size, of_alpha; /* |alpha|, and what it is off as f32 */
    double flushed;               /* of alpha and x, in alpha * x */
    double of_products;
};

static struct squasher squasher_of(const struct nb_gradient_bound *b) {
    const double alpha = b->c->alpha, size = fabs(alpha);
    return (struct squasher){
        .alpha = alpha,
        .size = size,
        .of_alpha = fabs(nb_round_to(alpha, NB_F32) - alpha),
        .flushed = b->rows.flushed * (1 + size),
        .of_products = nb_gradient_compound(b->rows.of_g, b->rows.op.u, 4 + b->low_precision),
    };
}

static double larger(double a, double b) { return a > b ? a : b; }

/* 1 - t^2, its slope magnified: t is off by 8 u (4 ulp, what vector libraries promise) and by the rounding of alpha * x times the
 * largest slope there; the square and the difference are rounded. */
static double slope_error(const struct nb_gradient_bound *b, const struct squasher *q, double x,
                          const struct nb_squash *exact) {
    const struct nb_precision *p = &b->rows.op;
    const double t = fabs(q->alpha * x), size = fabs(exact->tanh);
    double e = 8 * single_u * size;
    if (isfinite(t)) {
        const double off = fabs(x) * q->of_alpha + p->u * t * (b->low_precision ? 2 : 1) + p->eta + q->flushed;
        /* the slope grows towards 0 by at most exp(2 off), and is 1 there */
        const double slope = exact->slope * (1 + 2 * off + 4 * off * off);
        e += off * (off < 0.5 && slope < 1 ? slope : 1);
    }
    if (b->low_precision) e += p->u * (size + e);
    return 2 * size * e + e * e + 2 * p->u + p->eta;
}

/* dy w alpha (1 - t^2): three products, alpha rounded. */
static double squashed(const struct nb_gradient_bound *b, const struct squasher *q, const struct magnitudes *m,
                       double x, const struct nb_squash *exact) {
    const struct nb_precision *p = &b->rows.op;
    const double e = slope_error(b, q, x, exact), factors = m->dy * m->weight * q->size;
    const double largest = larger(m->dy, 1) * larger(m->weight, 1) * larger(q->size, 1) * (1 + q->of_products);
    if (!(largest < p->overflow)) return INFINITY;
    const double lost = p->eta * (4 + (1 + m->weight) * (1 + q->size)) + b->rows.flushed * (m->dy + m->weight);
    return stored(b, m->dx, factors * (e + (exact->slope + e) * q->of_products) + lost);
}

static void squashed_chunk(const struct nb_gradient_bound *b, int64_t row, int64_t col, int64_t n, const double *dx,
                           double *tolerance, enum nb_loss *loss) {
    const struct nb_inputs *in = b->g->in;
    const struct squasher q = squasher_of(b);
    const struct nb_squash *squash = nb_gradient_squash(b->g, row) + col;
    double x[CHUNK], dy[CHUNK];
    nb_truth_widen(in->x, row * in->cols + col, n, in->dtype, x);
    nb_truth_widen(in->dy, row * in->cols + col, n, in->dtype, dy);
    for (int64_t i = 0; i < n; i++) {
        const struct magnitudes m = {.dy = fabs(dy[i]), .weight = fabs(b->g->weight[col + i]), .dx = fabs(dx[i])};
        tolerance[i] = limited(dx[i], squashed(b, &q, &m, x[i], &squash[i]), NB_LOSS_NONE, loss);
    }
}

enum nb_loss nb_gradient_bound_row(const struct nb_gradient_bound *b, int64_t row, const double *dx,
                                   double *tolerance) {
    const bool squashes = b->c->op == NB_OP_DYT;
    enum nb_loss loss = NB_LOSS_NONE;
    for (int64_t col = 0; col < b->g->in->cols; col += CHUNK) {
        const int64_t left = b->g->in->cols - col, n = left < CHUNK ? left : CHUNK;
        if (squashes)
            squashed_chunk(b, row, col, n, dx + col, tolerance + col, &loss);
        else
            bound_chunk(b, row, col, n, dx + col, tolerance + col, &loss);
    }
    return loss;
}

/* ---- the struct -------------------------------------------------------------------------------------------------------- */

void nb_gradient_bound_init(struct nb_gradient_bound *b, const struct nb_case *c, const struct nb_gradient *g,
                            int64_t chain, int64_t column_chain, bool flushes) {
    *b = (struct nb_gradient_bound){.c = c, .g = g, .chain = chain, .column_chain = column_chain, .flushes = flushes};
    nb_gradient_arithmetic_init(&b->rows, c, g, chain, flushes);
    nb_gradient_arithmetic_init(&b->columns, c, g, column_chain, flushes);
    b->low_precision = b->rows.low_precision;
    const int narrowing = b->low_precision; /* rstd rounded to a narrow dtype */
    b->on_g = nb_gradient_compound(0, b->rows.op.u, ON_G + narrowing);
    b->on_mean_g = nb_gradient_compound(0, b->rows.op.u, ON_MEAN_G + narrowing);
    b->on_pull = nb_gradient_compound(0, b->rows.op.u, ON_PULL + narrowing);
    b->min_rstd = INFINITY;
    for (int64_t i = 0; i < g->n_stats; i++) {
        b->min_rstd = fmin(b->min_rstd, g->rstd[i]);
        if (g->mean) b->max_shift = fmax(b->max_shift, fabs((double)g->mean[i]) * g->rstd[i]);
        b->max_rstd = fmax(b->max_rstd, g->rstd[i]);
        b->max_distance = fmax(b->max_distance, g->rows[i].max_abs_xhat / g->rstd[i]);
        b->max_abs_dy = fmax(b->max_abs_dy, g->rows[i].max_abs_dy);
        b->max_abs_xhat = fmax(b->max_abs_xhat, g->rows[i].max_abs_xhat);
    }
    if (nb_gradient_place_of(c, 0).stat_step == 0) return;
    b->channels = nb_alloc((unsigned long long)g->n_stats, sizeof *b->channels);
    for (int64_t i = 0; i < g->n_stats; i++) share(&b->channels[i], b, i, c->mode == NB_TRAINING);
}

void nb_gradient_bound_release(struct nb_gradient_bound *b) {
    free(b->channels);
    *b = (struct nb_gradient_bound){0};
}
