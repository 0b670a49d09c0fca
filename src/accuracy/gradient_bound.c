// SPDX-License-Identifier: Apache-2.0
/* Sums of any order: a computed sum is the sum of t_i (1 + e_i) with |e_i| <= (1 + u)^k - 1, k the roundings that a term passes. */
#include "src/accuracy/gradient_bound.h"

#include <math.h>
#include <stdlib.h>

#include "src/accuracy/oracle.h"
#include "src/core/dtype.h"
#include "src/core/log.h"

/* ---- what a row shares ----------------------------------------------------------------------------------------------- */

/* What xhat may be off beside of_xhat * |xhat|, in an element and as the factor of a sum; shift = |mean| * rstd. */
struct xhat_error {
    double element, in_sums;
};

struct row_error {
    struct xhat_error xhat;
    double mean_g, mean_gx; /* absolute */
    double of_rstd;         /* relative: rstd stored as a subnormal of a narrow dtype */
    enum nb_loss loss;
};

/* Roundings of a division by n: 1/n, or n itself where f32 does not hold it, and the product. */
enum { DIVISION = 2, PRODUCT = 1 };

static double larger(double a, double b) { return a > b ? a : b; }

static double both(double g, double h) { return g + h + g * h; }

/* chain: the longest of roundings in the reduction that is meant. */
static void init_arithmetic(struct nb_gradient_arithmetic *a, const struct nb_case *c, const struct nb_gradient *g,
                            int64_t chain, bool flushes) {
    struct nb_arithmetic arithmetic;
    nb_arithmetic_init(&arithmetic, c, chain);
    *a = (struct nb_gradient_arithmetic){.c = c, .g = g, .op = arithmetic.op, .sum_overflow = arithmetic.sum.overflow};
    a->low_precision = c->stats_dtype == NB_STATS_X && c->dtype != NB_F32;
    if (flushes) {
        a->flushed = 0x1p-126;
        a->op.eta = fmax(a->op.eta, a->flushed);
    }
    const double u = a->op.u;
    const int narrowing = a->low_precision; /* of mean and rstd, of a sum's result */
    const int weight = c->formula.affine == NB_AFFINE_NONE ? 0 : c->formula.weight_offset ? 2 : 1;
    a->growth = arithmetic.growth;
    a->of_g = nb_compound(0, u, weight);
    a->of_xhat = nb_compound(0, u, (g->mean != NULL) + PRODUCT + narrowing);
    a->of_sum = nb_compound(arithmetic.growth, u, DIVISION + narrowing);
    a->of_mean_g = both(a->of_sum, a->of_g);
    /* the products; rstd as a factor of the sum in place of its terms */
    a->of_mean_gx = nb_compound(both(a->of_mean_g, a->of_xhat), u, 2 * PRODUCT);
    a->n = c->op == NB_OP_BATCHNORM ? (double)(c->shape.n * c->shape.hw) : (double)c->shape.cols;
    a->divisor = c->op == NB_OP_L2NORM ? 1 : (double)nb_truth_elements(c);
}

/* The mean rounded to a narrow dtype; x, mean and their difference flushed. Folded, fma(x, rstd, -mean * rstd) or b x + c, terms
 * of the size of the shift are rounded before they cancel; sums of g * x and of g, of which the one is taken from the other, carry
 * the whole error of a sum. */
static struct xhat_error xhat_error_of(const struct nb_gradient_arithmetic *a, double shift, double rstd) {
    const double u = a->op.u;
    double e = 3 * a->flushed * rstd * (1 + a->of_xhat) + a->op.eta;
    if (a->low_precision) e += (u * shift + 2 * a->op.eta * rstd) * (1 + a->of_xhat);
    if (!a->c->folded) return (struct xhat_error){e, e};
    e += nb_compound(0, u, 4) * shift + a->op.eta;
    return (struct xhat_error){e, e + 2 * nb_compound(a->of_sum, u, 2 * PRODUCT) * shift};
}

/* Coefficients of x hold rstd^2, folded ones rstd^3; where f32 has no such number, the squares of the forward pass had none either. With
 * all in a narrow dtype rstd alone must be one. */
static enum nb_loss loss_of_scale(const struct nb_gradient_arithmetic *a, double rstd, bool coupled) {
    const double power = !coupled || a->low_precision ? rstd : a->c->folded ? rstd * rstd * rstd : rstd * rstd;
    if (isnan(rstd)) return NB_LOSS_INPUT_NOT_FINITE;
    if (power >= a->op.overflow) return NB_LOSS_SCALE_OVERFLOW;
    if (a->low_precision || (!coupled && a->flushed == 0)) return NB_LOSS_NONE;
    return power < nb_formats[NB_F32].min_normal ? NB_LOSS_SQUARE_OVERFLOW : NB_LOSS_NONE;
}

/* Where a sum, or what is needed for its terms, may leave the range: g * xhat, or g * (x - mean), folded g * x. */
static enum nb_loss loss_of_sums(const struct nb_gradient_arithmetic *a, const struct nb_row_gradient *r, double rstd,
                                 double mean) {
    const double grown = 1 + a->of_mean_gx, distance = r->max_abs_xhat / rstd;
    if (!isfinite(r->mean_g) || !isfinite(r->mean_gx) || !isfinite(r->mean_abs_gx)) return NB_LOSS_INPUT_NOT_FINITE;
    double of_x = a->low_precision ? 0 : r->mean_abs_gx / rstd;
    if (a->c->folded) of_x += r->mean_abs_g * fabs(mean);
    /* the two means with their factors of rstd, as far as a form may fold them */
    const double once = larger(1, rstd), twice = a->low_precision ? once : larger(1, rstd * rstd);
    const double pull = (fabs(r->mean_gx) + r->mean_abs_gx * a->of_mean_gx) * twice;
    const double sum = a->divisor * larger(larger(r->mean_abs_gx, r->mean_abs_g), of_x);
    double single = larger(larger(fabs(r->mean_g) * once, pull), larger(distance, r->max_abs_g));
    if (a->c->folded) single = larger(fabs(mean) * rstd, single);
    const bool overflows = sum * grown >= a->sum_overflow || single * grown >= a->op.overflow;
    return overflows ? NB_LOSS_SQUARE_OVERFLOW : NB_LOSS_NONE;
}

/* What is lost of a term to the end of the range may be lost of each. coupled: does dx depend on the sums? */
static struct row_error row_error_of(const struct nb_gradient_arithmetic *a, int64_t stat, bool coupled) {
    const struct nb_row_gradient *r = &a->g->rows[stat];
    const double rstd = a->g->rstd[stat], mean = a->g->mean ? a->g->mean[stat] : 0, eta = a->op.eta;
    struct row_error e = {.loss = loss_of_scale(a, rstd, coupled)};
    if (a->low_precision) e.of_rstd = eta / rstd;
    if (!coupled) return e;
    if (e.loss == NB_LOSS_NONE) e.loss = loss_of_sums(a, r, rstd, mean);
    if (e.loss != NB_LOSS_NONE) return e;
    e.xhat = xhat_error_of(a, fabs(mean) * rstd, rstd);
    e.xhat.element += e.of_rstd * r->max_abs_xhat * (1 + a->of_xhat);
    e.xhat.in_sums += e.of_rstd * r->max_abs_xhat * (1 + a->of_xhat);
    const double lost_g = eta + a->flushed * (a->g->max_abs_weight + r->max_abs_dy);
    const double reach = r->max_abs_xhat + 1 + (a->c->folded ? fabs(mean) * rstd : 0);
    const double lost_gx = lost_g * reach + eta * (1 + rstd);
    if (nb_op_centres(a->c->op)) e.mean_g = r->mean_abs_g * a->of_mean_g + lost_g * (1 + a->of_mean_g) + eta;
    e.mean_gx = r->mean_abs_gx * a->of_mean_gx + eta * (reach + 2 * rstd) +
                (r->mean_abs_g * e.xhat.in_sums + a->n / a->divisor * lost_gx) * (1 + a->of_mean_gx);
    return e;
}

/* ---- elements -------------------------------------------------------------------------------------------------------- */

/* One element of dx: three terms, each with its own error and the roundings that any order of evaluation gives it, and the store. Errors
 * are added up as what they are, not as differences of large numbers. */

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
    struct row_error e;
    double mean, rstd, mean_g, mean_gx; /* the last two as magnitudes */
    double on_g, on_mean_g, on_pull;
    double of_own;         /* relative: rstd that the kernel found itself */
    double largest_factor; /* max(1, rstd) */
    /* In eta, to subnormals: of every element, and for each xhat, beside the weight's of dy * rstd. Factors of rstd, of xhat, of
     * x - mean (coefficients c = rstd^2 mean(gx)). */
    double lost, lost_xhat;
};

/* A mean that is off by e moves every xhat by e rstd, a scale that is off moves each in proportion. */
struct own_error {
    double scale, shift;
};

static struct own_error own_error_of(const struct nb_gradient_bound *b, int64_t stat) {
    if (!b->own) return (struct own_error){0, 0};
    const struct nb_statistics_error *e = &b->own[stat];
    const double mean = b->g->mean ? e->mean + single_u * fabs(b->g->mean[stat]) : 0, scale = e->scale + 2 * single_u;
    return (struct own_error){scale, mean * b->g->rstd[stat] * (1 + scale)};
}

static void add_own(struct nb_gradient_shared *s, const struct nb_gradient_bound *b, int64_t stat, bool coupled) {
    const struct own_error own = own_error_of(b, stat);
    const struct nb_row_gradient *r = &b->g->rows[stat];
    if (!b->own) return;
    if (s->e.loss == NB_LOSS_NONE) s->e.loss = b->own[stat].loss;
    if (s->e.loss == NB_LOSS_NONE && !isfinite(own.scale + own.shift)) s->e.loss = NB_LOSS_CANCELLATION;
    if (s->e.loss != NB_LOSS_NONE) return;
    s->of_own = own.scale;
    s->e.xhat.element += own.shift;
    if (coupled) s->e.mean_gx += (r->mean_abs_g * own.shift + r->mean_abs_gx * own.scale) * (1 + b->rows.of_mean_gx);
}

static void share(struct nb_gradient_shared *s, const struct nb_gradient_bound *b, int64_t stat, bool coupled) {
    const struct nb_gradient *g = b->g;
    *s = (struct nb_gradient_shared){
        .e = row_error_of(&b->rows, stat, coupled), .mean = g->mean ? g->mean[stat] : 0, .rstd = g->rstd[stat]};
    s->on_g = b->on_g + s->e.of_rstd * (1 + b->on_g);
    s->on_mean_g = b->on_mean_g + s->e.of_rstd * (1 + b->on_mean_g);
    s->on_pull = b->on_pull + s->e.of_rstd * (1 + b->on_pull);
    if (coupled) {
        s->mean_g = fabs(g->rows[stat].mean_g);
        s->mean_gx = fabs(g->rows[stat].mean_gx);
    }
    add_own(s, b, stat, coupled);
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
    const double of_xhat = m->xhat * both(b->rows.of_xhat, s->of_own) + s->e.xhat.element;
    const double of_pull = m->xhat * s->e.mean_gx + of_xhat * (s->mean_gx + s->e.mean_gx), pull = m->xhat * s->mean_gx;
    const double terms = (of_g + g * s->on_g + of_g * s->on_g) +
                         (s->e.mean_g + (s->mean_g + s->e.mean_g) * s->on_mean_g) +
                         (of_pull + (pull + of_pull) * s->on_pull);
    const double largest = (g + s->mean_g + pull + terms) * s->largest_factor + m->past;
    if (!(largest < p->overflow && m->xhat + of_xhat < p->overflow)) return INFINITY;
    double e = s->rstd * terms * (1 + s->of_own) + s->of_own * (m->dx + m->past) +
               p->eta * (s->lost + m->weight + m->xhat * s->lost_xhat);
    if (m->past > 0) e += u * (m->past + m->dx + e) + b->rows.flushed;
    return stored(b, m->dx, e);
}

/* Of a row: the squares of the tolerances, and of what dx comes of, rstd * dy * w and the gradient past the norm. */
struct extent {
    double errors, terms;
};

static struct extent bound_row(const struct nb_gradient_bound *b, int64_t row, const double *dx, double *tolerance,
                               enum nb_loss *loss) {
    const struct nb_gradient *g = b->g;
    const struct nb_inputs *in = g->in;
    const struct nb_gradient_place at = nb_gradient_place_of(b->c, row);
    const bool adds = in->dresidual_out && nb_op_adds(b->c->op);
    struct nb_gradient_shared own;
    const struct nb_gradient_shared *s = &own;
    struct extent extent = {0};
    for (int64_t i = 0; i < in->cols; i++) {
        const int64_t place = row * in->cols + i;
        if (b->channels)
            s = &b->channels[at.stat + i * at.stat_step];
        else if (i == 0 || i == at.n_coupled)
            share(&own, b, at.stat, i < at.n_coupled);
        const struct magnitudes m = {.dy = fabs(nb_get(in->dy, place, in->dtype)),
                                     .weight = fabs(g->weight[at.param + i * at.param_step]),
                                     .xhat = fabs((nb_get(in->x, place, in->dtype) - s->mean) * s->rstd),
                                     .past = adds ? fabs(nb_get(in->dresidual_out, place, in->dtype)) : 0,
                                     .dx = fabs(dx[i])};
        const double allowed = s->e.loss == NB_LOSS_NONE ? normalized(b, s, &m) : (double)INFINITY;
        tolerance[i] = limited(dx[i], allowed, s->e.loss, loss);
        extent.errors += tolerance[i] * tolerance[i];
        extent.terms += pow(s->rstd * m.dy * m.weight, 2) + m.past * m.past;
    }
    return extent;
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
        .of_products = nb_compound(b->rows.of_g, b->rows.op.u, 4 + b->low_precision),
    };
}

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

static enum nb_loss squashed_row(const struct nb_gradient_bound *b, int64_t row, const double *dx, double *tolerance) {
    const struct nb_inputs *in = b->g->in;
    const struct squasher q = squasher_of(b);
    const struct nb_squash *squash = nb_squashed_row(b->g->squashed, row);
    enum nb_loss loss = NB_LOSS_NONE;
    for (int64_t i = 0; i < in->cols; i++) {
        const int64_t place = row * in->cols + i;
        const struct magnitudes m = {
            .dy = fabs(nb_get(in->dy, place, in->dtype)), .weight = fabs(b->g->weight[i]), .dx = fabs(dx[i])};
        const double allowed = squashed(b, &q, &m, nb_get(in->x, place, in->dtype), &squash[i]);
        tolerance[i] = limited(dx[i], allowed, NB_LOSS_NONE, &loss);
    }
    return loss;
}

enum nb_loss nb_gradient_bound_row(const struct nb_gradient_bound *b, int64_t row, const double *dx,
                                   double *tolerance) {
    if (b->c->op == NB_OP_DYT) return squashed_row(b, row, dx, tolerance);
    enum nb_loss loss = NB_LOSS_NONE;
    const struct extent extent = bound_row(b, row, dx, tolerance, &loss);
    /* Among subnormal numbers, rounding is as large as they are. */
    const double least = nb_formats[b->c->dtype].min_normal, cols = (double)b->g->in->cols;
    const bool allows_everything = extent.terms > cols * least * least && extent.errors >= extent.terms;
    return loss == NB_LOSS_NONE && allows_everything ? NB_LOSS_UNBOUNDED : loss;
}

/* ---- the struct -------------------------------------------------------------------------------------------------------- */

static void set_own(struct nb_gradient_bound *b, const struct nb_oracle *own) {
    struct nb_bound forward released_by(nb_bound_release);
    nb_bound_init(&forward, b->c, own, b->chain);
    b->own = nb_alloc((unsigned long long)b->g->n_stats, sizeof *b->own);
    for (int64_t i = 0; i < b->g->n_stats; i++) {
        const struct own_error e = (b->own[i] = nb_bound_statistics(&forward, i), own_error_of(b, i));
        b->max_own_scale = fmax(b->max_own_scale, e.scale);
        b->max_own_shift = fmax(b->max_own_shift, e.shift);
    }
}

void nb_gradient_bound_init(struct nb_gradient_bound *b, const struct nb_case *c, const struct nb_gradient *g,
                            const struct nb_oracle *own, int64_t chain, int64_t column_chain, bool flushes) {
    *b = (struct nb_gradient_bound){.c = c, .g = g, .chain = chain};
    init_arithmetic(&b->rows, c, g, chain, flushes);
    init_arithmetic(&b->columns, c, g, column_chain, flushes);
    b->low_precision = b->rows.low_precision;
    const int narrowing = b->low_precision; /* rstd rounded to a narrow dtype */
    b->on_g = nb_compound(0, b->rows.op.u, ON_G + narrowing);
    b->on_mean_g = nb_compound(0, b->rows.op.u, ON_MEAN_G + narrowing);
    b->on_pull = nb_compound(0, b->rows.op.u, ON_PULL + narrowing);
    b->min_rstd = INFINITY;
    if (own && g->n_stats > 0) set_own(b, own);
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
    free(b->own);
    *b = (struct nb_gradient_bound){0};
}

/* ---- parameters ------------------------------------------------------------------------------------------------------ */

/* The bound of dgamma, dbeta and dalpha: sums down the columns, each term with its own error, in chains of column_chain roundings. The
 * outputs are f32, so that the last rounding is the sum's own. */

/* Relative to tanh: 4 ulp, and what alpha * x is off, since |t| (1 - tanh^2 t) <= |tanh t|. */
static double tanh_error(const struct nb_gradient_bound *b) {
    const double alpha = b->c->alpha, u = b->columns.op.u;
    const double of_alpha = alpha != 0 ? fabs(nb_round_to(alpha, NB_F32) / alpha - 1) : 0;
    return 8 * 0x1p-24 + (of_alpha + u) * (1 + 4 * u) + (b->low_precision ? 2 * u : 0);
}

/* Terms of a column: its rows, or a channel's elements. */
static double n_terms(const struct nb_gradient_bound *b) {
    return b->c->op == NB_OP_BATCHNORM ? b->columns.n : (double)b->g->in->rows;
}

static double finished(const struct nb_gradient_bound *b, double magnitudes, double exact, double tolerance) {
    const bool in_range = magnitudes * (1 + b->columns.of_sum) < b->columns.sum_overflow &&
                          fabs(exact) + tolerance < b->columns.op.overflow;
    return in_range ? tolerance * slack : (double)INFINITY;
}

/* Of dy * xhat: xhat's own error, dy that is flushed, the product; of (dy * rstd) * (x - mean) what a subnormal dy * rstd lost. */
static double bound_dgamma(const struct nb_gradient_bound *b, int64_t i) {
    const struct nb_gradient_arithmetic *a = &b->columns;
    const struct nb_gradient *g = b->g;
    const bool squashes = b->c->op == NB_OP_DYT, by_channel = b->c->op == NB_OP_BATCHNORM;
    const double rstd = squashes ? 1 : by_channel ? g->rstd[i] : b->max_rstd;
    const double min_rstd = by_channel ? rstd : b->min_rstd;
    const double shift = by_channel && g->mean ? fabs((double)g->mean[i]) * rstd : b->max_shift;
    struct own_error own = {b->max_own_scale, b->max_own_shift};
    if (by_channel) own = own_error_of(b, i);
    const double of_xhat = squashes ? tanh_error(b) : both(a->of_xhat, own.scale);
    /* the product; rstd as a factor of the sum; the result in a narrow dtype */
    const double d = nb_compound(a->growth, a->op.u, 2 + b->low_precision) * (1 + of_xhat) + of_xhat;
    const double lost = a->op.eta * (1 + rstd) + a->flushed * (b->max_abs_xhat + b->max_abs_dy + squashes);
    double of_terms = xhat_error_of(a, shift, rstd).in_sums + own.shift;
    if (b->low_precision && !squashes) of_terms += a->op.eta / min_rstd * b->max_abs_xhat * (1 + a->of_xhat);
    const double tolerance =
        g->abs_dgamma[i] * d +
        (g->abs_dbeta[i] * of_terms + n_terms(b) * lost + g->abs_distance[i] * a->op.eta) * (1 + d) + a->op.eta;
    const double distance = by_channel ? g->rows[i].max_abs_xhat / rstd : b->max_distance;
    const double folded = fmax(rstd * b->max_abs_dy, b->c->folded ? shift : 0);
    const double largest = fmax(fmax(rstd, distance), fmax(b->max_abs_xhat, folded));
    if (largest * (1 + a->of_xhat) >= a->op.overflow) return INFINITY;
    return finished(b, g->abs_dgamma[i] * (by_channel ? fmax(1, 1 / rstd) : 1), g->dgamma[i], tolerance);
}

static double bound_dbeta(const struct nb_gradient_bound *b, int64_t i) {
    const struct nb_gradient_arithmetic *a = &b->columns;
    const struct nb_gradient *g = b->g;
    const double d = nb_compound(a->growth, a->op.u, b->low_precision);
    return finished(b, g->abs_dbeta[i], g->dbeta[i], g->abs_dbeta[i] * d + n_terms(b) * a->flushed * (1 + d));
}

/* dy w x (1 - t^2): the slope's error is absolute, 2 |t| that of t and two roundings. */
static double bound_dalpha(const struct nb_gradient_bound *b) {
    const struct nb_gradient_arithmetic *a = &b->columns;
    const struct nb_gradient *g = b->g;
    const double u = a->op.u, of_tanh = tanh_error(b), n = (double)g->in->rows * (double)g->in->cols;
    const double sums = (1 + b->rows.growth) * (1 + a->growth) - 1;
    const double d = nb_compound(sums * (1 + a->of_g) + a->of_g, u, 4 + b->low_precision);
    const double of_slope = 2 * of_tanh + of_tanh * of_tanh + 2 * u + a->op.eta;
    const double lost = (a->op.eta + a->flushed) * (1 + b->max_abs_dy) * (1 + g->max_abs_weight);
    return finished(b, g->abs_dy_w_x, g->dalpha,
                    g->abs_dalpha * d + (g->abs_dy_w_x * of_slope + n * lost) * (1 + d) + a->op.eta);
}

double nb_gradient_bound_parameter(const struct nb_gradient_bound *b, enum nb_parameter parameter, int64_t i) {
    switch (parameter) {
    case NB_DGAMMA:
        return bound_dgamma(b, i);
    case NB_DBETA:
        return bound_dbeta(b, i);
    default:
        return bound_dalpha(b);
    }
}
