// SPDX-License-Identifier: Apache-2.0
/* One element of dx: three terms, each with its own error and the roundings that any order of evaluation gives it, and the store. Errors
 * are added up as what they are, not as differences of large numbers. */
#include "src/accuracy/gradient_bound.h"

#include <math.h>

#include "src/accuracy/squash.h"
#include "src/accuracy/truth.h"
#include "src/number/dtype.h"

static const double single_u = 0x1p-24, single_eta = 0x1p-150;

/* What the exact gradient itself and the evaluation in double may be off: (1 + u)^k - 1 has 2^-53 / u of it, 2^-29. */
static const double slack = 1 + 0x1p-26;

/* Roundings of a term before the last operation, which the store has. dy * w is multiplied by rstd and added twice, of which one is
 * the last; mean(g) is folded with rstd besides; xhat * mean(gx) may be a product of its own, be folded twice (rstd^2 mean(gx) as the
 * coefficient of x), and is added twice. */
enum { ON_G = 2, ON_MEAN_G = 3, ON_PULL = 5 };

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
}

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
struct shared {
    struct nb_row_gradient_error e;
    double mean, rstd, mean_g, mean_gx; /* the last two as magnitudes */
    double on_g, on_mean_g, on_pull;
};

static void share(struct shared *s, const struct nb_gradient_bound *b, int64_t stat, bool coupled) {
    const struct nb_gradient *g = b->g;
    *s = (struct shared){.e = nb_row_gradient_error(&b->rows, stat, coupled),
                         .mean = g->mean ? g->mean[stat] : 0,
                         .rstd = g->rstd[stat]};
    s->on_g = b->on_g + s->e.of_rstd * (1 + b->on_g);
    s->on_mean_g = b->on_mean_g + s->e.of_rstd * (1 + b->on_mean_g);
    s->on_pull = b->on_pull + s->e.of_rstd * (1 + b->on_pull);
    if (!coupled) return;
    s->mean_g = fabs(g->rows[stat].mean_g);
    s->mean_gx = fabs(g->rows[stat].mean_gx);
}

struct magnitudes {
    double dy, weight, xhat, past, dx;
};

/* A gradient that comes past the norm costs another rounding, of the norm's own. */
static double normalized(const struct nb_gradient_bound *b, const struct shared *s, const struct magnitudes *m) {
    const struct nb_precision *p = &b->rows.op;
    const double u = p->u, g = m->dy * m->weight;
    const double of_g = g * b->rows.of_g + p->eta + b->rows.flushed * (m->weight + m->dy);
    const double of_xhat = m->xhat * b->rows.of_xhat + s->e.xhat.element;
    const double of_pull = m->xhat * s->e.mean_gx + of_xhat * (s->mean_gx + s->e.mean_gx), pull = m->xhat * s->mean_gx;
    const double terms = (of_g + g * s->on_g + of_g * s->on_g) +
                         (s->e.mean_g + (s->mean_g + s->e.mean_g) * s->on_mean_g) +
                         (of_pull + (pull + of_pull) * s->on_pull);
    const double largest = (g + s->mean_g + pull + terms) * (s->rstd > 1 ? s->rstd : 1) + m->past;
    if (!(largest < p->overflow)) return INFINITY;
    /* what is subnormal: factors of rstd, of xhat, of x - mean (coefficients c = rstd^2 mean(gx)) */
    double e = s->rstd * terms + p->eta * (2 * s->rstd + 3 + m->xhat * (1 + (1 + s->mean_gx) / s->rstd));
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
    struct shared s = {0};
    nb_truth_widen(in->x, first, n, in->dtype, x);
    nb_truth_widen(in->dy, first, n, in->dtype, dy);
    if (in->dresidual_out && nb_gradient_adds(b->c)) nb_truth_widen(in->dresidual_out, first, n, in->dtype, past);
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = col + i;
        if (i == 0 || at.stat_step || place == at.n_coupled)
            share(&s, b, at.stat + place * at.stat_step, place < at.n_coupled);
        const struct magnitudes m = {.dy = fabs(dy[i]),
                                     .weight = fabs(g->weight[at.param + place * at.param_step]),
                                     .xhat = fabs((x[i] - s.mean) * s.rstd),
                                     .past = fabs(past[i]),
                                     .dx = fabs(dx[i])};
        const double allowed = s.e.loss == NB_LOSS_NONE ? normalized(b, &s, &m) : (double)INFINITY;
        tolerance[i] = limited(dx[i], allowed, s.e.loss, loss);
    }
}

/* ---- DyT ----------------------------------------------------------------------------------------------------------------- */

/* 1 - t^2, its slope magnified: t is off by 8 u (4 ulp, what vector libraries promise) and by the rounding of alpha * x times the
 * largest slope there; the square and the difference are rounded. */
static double slope_error(const struct nb_gradient_bound *b, double x, const struct nb_squash *exact) {
    const struct nb_precision *p = &b->rows.op;
    const double alpha = b->c->alpha, t = fabs(alpha * x), size = fabs(exact->tanh);
    double e = 8 * single_u * size;
    if (isfinite(t)) {
        const double off = fabs(x) * fabs(nb_round_to(alpha, NB_F32) - alpha) + p->u * t * (b->low_precision ? 2 : 1) +
                           p->eta + b->rows.flushed * (1 + fabs(alpha));
        /* the slope grows towards 0 by at most exp(2 off), and is 1 there */
        e += off * (off < 0.5 ? fmin(1, exact->slope * (1 + 2 * off + 4 * off * off)) : 1);
    }
    if (b->low_precision) e += p->u * (size + e);
    return 2 * size * e + e * e + 2 * p->u + p->eta;
}

/* dy w alpha (1 - t^2): three products, alpha rounded. */
static double squashed(const struct nb_gradient_bound *b, double x, double dy, double weight, double dx) {
    const struct nb_precision *p = &b->rows.op;
    const struct nb_squash exact = nb_squash(b->c->alpha, x);
    const double e = slope_error(b, x, &exact), factors = dy * weight * fabs(b->c->alpha);
    const double of_products = nb_gradient_compound(b->rows.of_g, p->u, 4 + b->low_precision);
    const double largest = fmax(dy, 1) * fmax(weight, 1) * fmax(fabs(b->c->alpha), 1) * (1 + of_products);
    if (!(largest < p->overflow)) return INFINITY;
    const double lost = p->eta * (4 + (1 + weight) * (1 + fabs(b->c->alpha))) + b->rows.flushed * (dy + weight);
    return stored(b, dx, factors * (e + (exact.slope + e) * of_products) + lost);
}

static enum nb_loss squashed_row(const struct nb_gradient_bound *b, int64_t row, const double *dx, double *tolerance) {
    const struct nb_inputs *in = b->g->in;
    enum nb_loss loss = NB_LOSS_NONE;
    for (int64_t i = 0; i < in->cols; i++) {
        const double x = nb_get(in->x, row * in->cols + i, in->dtype);
        const double dy = nb_get(in->dy, row * in->cols + i, in->dtype);
        const double allowed = squashed(b, x, fabs(dy), fabs(b->g->weight[i]), fabs(dx[i]));
        tolerance[i] = limited(dx[i], allowed, NB_LOSS_NONE, &loss);
    }
    return loss;
}

enum nb_loss nb_gradient_bound_row(const struct nb_gradient_bound *b, int64_t row, const double *dx,
                                   double *tolerance) {
    enum nb_loss loss = NB_LOSS_NONE;
    if (b->c->op == NB_OP_DYT) return squashed_row(b, row, dx, tolerance);
    for (int64_t col = 0; col < b->g->in->cols; col += CHUNK) {
        const int64_t left = b->g->in->cols - col;
        bound_chunk(b, row, col, left < CHUNK ? left : CHUNK, dx + col, tolerance + col, &loss);
    }
    return loss;
}
