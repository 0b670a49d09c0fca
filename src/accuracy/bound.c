// SPDX-License-Identifier: Apache-2.0
/* Intervals, not first-order terms: each step gives the least and the largest value that rounding can produce, so that the
 * bound holds where errors are no longer small (bf16 accumulators, eps near the variance) and turns infinite exactly where
 * the result may be lost. A rounding to nearest multiplies by a factor in [1 / (1 + u), 1 + u]. */
#include "src/accuracy/bound.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"

/* ---- what a row shares ----------------------------------------------------------------------------------------------- */

const char *const nb_loss_names[NB_N_LOSSES + 1] = {
    [NB_LOSS_NONE] = "none",
    [NB_LOSS_SQUARE_OVERFLOW] = "square_overflow",
    [NB_LOSS_SQUARE_UNDERFLOW] = "square_underflow",
    [NB_LOSS_EPS_ZERO] = "eps_zero",
    [NB_LOSS_CANCELLATION] = "cancellation",
    [NB_LOSS_OUTPUT_OVERFLOW] = "output_overflow",
    [NB_LOSS_INPUT_NOT_FINITE] = "input_not_finite",
    [NB_LOSS_SCALE_OVERFLOW] = "scale_overflow",
    [NB_LOSS_UNBOUNDED] = "unbounded",
};

/* x86 rsqrtps: 1.5 * 2^-12 (Intel SDM, AMD APM), rsqrt14: 2^-14. ARM frsqrte: 8 bits (2^-8.25 at worst, by the table of the Arm ARM's
 * RecipSqrtEstimate), and so two steps. A step leaves 3/2 e^2 + 1/2 e^3. */
double nb_rsqrt_error(uint32_t root) {
#if defined(__aarch64__)
    const int steps = 2;
    double e = 0x1p-8;
#else
    const int steps = 1;
    double e = 1.5 * 0x1p-12;
#endif
    if (root == NB_ROOT_RSQRT_RAW) return e;
    for (int i = 0; i < steps; i++) e = 1.5 * e * e + 0.5 * e * e * e;
    return root == NB_ROOT_RSQRT_NR ? e : 0;
}

static struct nb_precision precision_of(enum nb_dtype dtype) {
    const struct nb_format *f = &nb_formats[dtype], *single = &nb_formats[NB_F32];
    if (dtype == NB_F32) return (struct nb_precision){f->unit_roundoff, f->min_subnormal / 2, f->overflow};
    /* computed in f32, then rounded */
    return (struct nb_precision){f->unit_roundoff + 2 * single->unit_roundoff, f->min_subnormal * 0.501, f->overflow};
}

/* A composed kernel sums as an eager framework does: in f32 whatever the tensors are, and rounds the result. */
void nb_arithmetic_init(struct nb_arithmetic *a, const struct nb_case *c, int64_t chain) {
    assert(chain >= 0);
    const bool narrow = c->stats_dtype == NB_STATS_X;
    a->op = precision_of(narrow ? (enum nb_dtype)c->dtype : NB_F32);
    a->sum = precision_of(narrow && c->style != NB_COMPOSED ? (enum nb_dtype)c->dtype : NB_F32);
    if (c->flushes) a->op.eta = fmax(a->op.eta, NB_FLUSHED);
    a->chain = (double)chain;
    a->growth = expm1((double)chain * log1p(a->sum.u));
}

/* ---- variance ---------------------------------------------------------------------------------------------------------- */

/* What the kernel may hold for the variance (or mean square, or sum of squares), and its mean's error. */
struct spread {
    double low, high, mean_error;
    bool overflow;
};

/* Roundings of a division by n: n itself where f32 does not hold it, and the quotient (or a multiplication by 1/n). */
enum { DIVISION = 2, PRODUCT = 1, DIFFERENCE = 1 };

static double mean_sum_error(const struct nb_arithmetic *a, double mean_abs) {
    return mean_abs * nb_compound(a->growth, a->op.u, DIVISION) + a->op.eta;
}

static struct spread squares(const struct nb_arithmetic *a, const struct nb_case *c, const struct nb_row_truth *t,
                             double n) {
    const bool mean = c->op != NB_OP_L2NORM;
    const double d = nb_compound(a->growth, a->op.u, PRODUCT + (mean ? DIVISION : 0));
    const double lost = a->op.eta * (mean ? 2 : n); /* squares, each up to eta; and the quotient */
    const double largest = t->max_abs * t->max_abs;
    /* No sum of squares is below its largest term, however it stagnates. */
    const double floor = largest / (mean ? n : 1) / nb_compound(1, a->op.u, 4) - lost;
    return (struct spread){
        .low = fmax(fmax(t->var / (1 + d) - lost, floor), 0),
        .high = t->var * (1 + d) + lost,
        .overflow = largest * (1 + a->op.u) >= a->op.overflow || (mean ? n : 1) * t->var * (1 + d) >= a->sum.overflow,
    };
}

/* Sum of squared distances from a mean that is off: v + mean_error^2, in which each distance is rounded. */
static struct spread squares_about_mean(const struct nb_arithmetic *a, const struct nb_row_truth *t, double n) {
    const double off = mean_sum_error(a, t->mean_abs);
    const double d = nb_compound(a->growth, a->op.u, 2 * DIFFERENCE + PRODUCT + DIVISION), lost = 2 * a->op.eta;
    const double reach = fmax(t->max - t->mean, t->mean - t->min) + off;
    const double high = (t->var + off * off) * (1 + d) + lost;
    return (struct spread){
        .low = fmax(t->var / (1 + d) - lost, 0),
        .high = high,
        .mean_error = off,
        .overflow = reach * reach * (1 + nb_compound(0, a->op.u, 3)) >= a->op.overflow || n * high >= a->sum.overflow ||
                    n * t->mean_abs * (1 + a->growth) >= a->sum.overflow,
    };
}

/* From that, the square of the residual mean: it takes mean_error^2 away again, up to the residual's own error e. */
static struct spread corrected(const struct nb_arithmetic *a, const struct nb_row_truth *t, double n) {
    struct spread s = squares_about_mean(a, t, n);
    const double off = s.mean_error, u = a->op.u;
    const double e = nb_compound(a->growth, u, DIFFERENCE + DIVISION) * (sqrt(t->var) + off) + a->op.eta;
    const double d = nb_compound(a->growth, u, 2 * DIFFERENCE + PRODUCT + DIVISION + 1);
    const double error = d * (t->var + off * off) + 2 * off * e + e * e + 4 * u * (off + e) * (off + e) + 3 * a->op.eta;
    s.low = t->var - error;
    s.high = t->var + error;
    return s;
}

/* E[t^2] - E[t]^2 with t = x - shift, where t is rounded unless the shift is 0. */
static struct spread one_pass(const struct nb_arithmetic *a, const struct nb_row_truth *t, double n, double shift,
                              bool shifted) {
    const double u = a->op.u, mean = fabs(t->mean - shift), mean_square = t->var + mean * mean;
    const double mean_abs = shifted ? sqrt(mean_square) : t->mean_abs; /* at least the mean of |t| */
    const int subtraction = shifted ? DIFFERENCE : 0;
    const double off = mean_abs * nb_compound(a->growth, u, subtraction + DIVISION) + a->op.eta;
    const double d = nb_compound(a->growth, u, 2 * subtraction + PRODUCT + DIVISION);
    const double squared_mean = 2 * mean * off + off * off + u * (mean + off) * (mean + off);
    double error = d * mean_square + squared_mean + 3 * a->op.eta;
    error += u * (t->var + error);
    const double reach = fmax(fabs(t->max - shift), fabs(t->min - shift));
    return (struct spread){
        .low = t->var - error,
        .high = t->var + error,
        .mean_error = off + (shifted ? u * (fabs(t->mean) + off) : 0),
        .overflow = reach * reach * (1 + 3 * u) >= a->op.overflow || n * mean_square * (1 + d) >= a->sum.overflow ||
                    n * mean_abs * (1 + a->growth) >= a->sum.overflow,
    };
}

/* Updating (Welford), parts merged. The mean of step j is off by (1/j) sum i delta_i, |delta_i| <= u |m_i| + 3 u |d_i| / i: by `walk` in
 * root mean square over the steps, by `end` where a part ends. Both meet distances whose squares, over all updates and merges, add up to n
 * v (Cauchy-Schwarz), and so do the differences of the ends over any order of merging to n end^2. A merge about the mean of one part adds
 * roundings of numbers as large as that part's distance from the mean. derivations.md has the steps. */
static struct spread updating(const struct nb_arithmetic *a, const struct nb_row_truth *t, double n) {
    const double u = a->op.u, h = a->chain > 1 ? a->chain : 1, levels = n > 1 ? ceil(log2(n)) : 0;
    const double mean = fabs(t->mean), sd = sqrt(t->var), higher = expm1(h * log1p(u)) / (h * u); /* orders of u */
    const double lost = (h + 2) * a->op.eta, reach = t->max - t->min;
    const double walk = (mean * (0.289 * h + 1) + sd * (0.472 * h + 8.5)) * u * higher + lost;
    const double end = (mean * (0.61 * h + 1) + sd * (0.667 * h + 5)) * u * higher + lost;
    const double merging = expm1((levels + 5) * log1p(u)) * fmin(sqrt(n) * sd, reach) + 3 * levels * u * sd;
    const double off = hypot(walk, end), beside = 2 * off * off + merging * merging;
    const double error = nb_compound(a->growth, u, 6) * (t->var + beside) + 2 * sd * off + beside + 4 * a->op.eta;
    const double largest = reach + end + merging; /* distance */
    return (struct spread){
        .low = fmax(t->var - error, 0), /* a sum of products of equal sign */
        .high = t->var + error,
        .mean_error = end + merging,
        .overflow = largest * largest * (1 + 3 * u) >= a->op.overflow || n * (t->var + error) >= a->sum.overflow,
    };
}

static struct spread running(const struct nb_arithmetic *a, const struct nb_case *c, const struct nb_row_truth *t) {
    const bool narrow = c->stats_dtype == NB_STATS_X; /* stored in f32, so exact there */
    const double d = narrow ? a->op.u : 0, lost = narrow ? a->op.eta : 0;
    return (struct spread){.low = fmax(t->var / (1 + d) - lost, 0),
                           .high = t->var * (1 + d) + lost,
                           .mean_error = fabs(t->mean) * d + lost,
                           .overflow = t->var >= a->op.overflow};
}

static struct spread spread_of(const struct nb_arithmetic *a, const struct nb_case *c, const struct nb_row_truth *t,
                               double n) {
    if (c->op == NB_OP_BATCHNORM && c->mode == NB_INFERENCE) return running(a, c, t);
    if (!nb_op_centres(c->op)) return squares(a, c, t, n);
    switch (c->variance) {
    case NB_VAR_CORRECTED:
        return corrected(a, t, n);
    case NB_VAR_WELFORD:
        return updating(a, t, n);
    case NB_VAR_ONEPASS:
        return one_pass(a, t, n, 0, false);
    case NB_VAR_SHIFTED:
        return one_pass(a, t, n, t->first, true);
    default:
        return squares_about_mean(a, t, n);
    }
}

/* ---- scale ------------------------------------------------------------------------------------------------------------- */

struct range {
    double low, high;
};

/* eps as the double that was asked for, as f32 and as the statistics' dtype holds it. */
static struct range stored_eps(const struct nb_case *c) {
    const double single = nb_round_to(c->eps, NB_F32);
    const double narrow = c->stats_dtype == NB_STATS_X ? nb_round_to(c->eps, (enum nb_dtype)c->dtype) : single;
    return (struct range){fmin(c->eps, fmin(single, narrow)), fmax(c->eps, fmax(single, narrow))};
}

static struct range rounded(struct range r, const struct nb_precision *p) {
    return (struct range){r.low / (1 + p->u) - p->eta, r.high * (1 + p->u) + p->eta};
}

/* sqrt(v) and eps in their places: what the elements are divided by, before the kernel's root is taken into account. */
static struct range denominator(const struct nb_arithmetic *a, const struct nb_case *c, struct range v) {
    const struct range eps = stored_eps(c);
    if (c->formula.eps_place == NB_EPS_INSIDE) {
        struct range q = rounded((struct range){v.low + eps.low, v.high + eps.high}, &a->op);
        return q.low > 0 ? (struct range){sqrt(q.low), sqrt(q.high)} : (struct range){0, sqrt(fmax(q.high, 0))};
    }
    struct range s = {sqrt(fmax(v.low, 0)), sqrt(v.high)};
    if (c->formula.eps_place == NB_EPS_OUTSIDE)
        return rounded((struct range){s.low / (1 + a->op.u) + eps.low, s.high * (1 + a->op.u) + eps.high}, &a->op);
    return (struct range){fmax(s.low / (1 + a->op.u), eps.low), fmax(s.high * (1 + a->op.u), eps.high)};
}

/* Relative error of 1 / denominator by the kernel's root; a division per element is counted with the elements. */
static double root_error(const struct nb_arithmetic *a, const struct nb_case *c) {
    const double u = a->op.u, estimate = nb_rsqrt_error(c->formula.root);
    const double narrowing = c->stats_dtype == NB_STATS_X ? u : 0;
    switch (c->formula.root) {
    case NB_ROOT_DIV_SQRT:
        return u;
    case NB_ROOT_MUL_RECIP:
        return nb_compound(0, u, 2);
    case NB_ROOT_RSQRT_NR: /* 4 roundings of the last step, of which those of the residual count half; a step squares those before it */
        return estimate + 4 * 0x1p-24 + narrowing;
    default:
        return estimate + narrowing;
    }
}

static enum nb_loss why_zero(const struct nb_case *c, const struct nb_row_truth *t, double var_low) {
    const bool subtracts =
        c->variance == NB_VAR_ONEPASS || c->variance == NB_VAR_SHIFTED || c->variance == NB_VAR_CORRECTED;
    if (subtracts && var_low < 0) return NB_LOSS_CANCELLATION;
    if (t->var > 0 && !(c->eps > 0 && stored_eps(c).low == 0)) return NB_LOSS_SQUARE_UNDERFLOW;
    return NB_LOSS_EPS_ZERO;
}

static void set_scale_error(struct nb_statistics_error *e, const struct nb_arithmetic *a, const struct nb_case *c,
                            const struct nb_row_truth *t, const struct spread *v) {
    const bool estimate = c->formula.root == NB_ROOT_RSQRT_NR || c->formula.root == NB_ROOT_RSQRT_RAW;
    const struct range s = denominator(a, c, (struct range){v->low, v->high});
    /* A negative variance has no root. An estimate is Inf for a subnormal argument, and NaN after Newton. */
    const bool no_root = v->low < 0 && c->formula.eps_place != NB_EPS_INSIDE;
    const bool no_estimate = estimate && s.low * s.low < nb_formats[NB_F32].min_normal;
    if (!(s.low > 0) || no_root || no_estimate || !(t->scale > 0) || isinf(t->scale)) {
        e->loss = why_zero(c, t, v->low);
        return;
    }
    const double root = 1 + root_error(a, c), largest = root / s.low;
    if (c->formula.root != NB_ROOT_DIV_SQRT && largest >= a->op.overflow) {
        e->loss = NB_LOSS_SCALE_OVERFLOW;
        return;
    }
    e->scale = fmax(largest / t->scale - 1, 1 - (2 - root) / s.high / t->scale);
}

static struct nb_statistics_error statistics_error(const struct nb_arithmetic *a, const struct nb_case *c,
                                                   const struct nb_row_truth *t, int64_t n) {
    struct nb_statistics_error e = {.scale = INFINITY, .var = INFINITY, .loss = NB_LOSS_NONE};
    if (!isfinite(t->mean) || !isfinite(t->var)) {
        e.loss = NB_LOSS_INPUT_NOT_FINITE;
        return e;
    }
    const struct spread v = spread_of(a, c, t, (double)n);
    e.mean = v.mean_error;
    if (v.overflow || v.high >= a->op.overflow) {
        e.loss = NB_LOSS_SQUARE_OVERFLOW;
        return e;
    }
    e.var = fmax(v.high - t->var, t->var - v.low);
    set_scale_error(&e, a, c, t, &v);
    return e;
}

/* ---- elements -------------------------------------------------------------------------------------------------------- */

/* One element: an error e of a value of magnitude |v| is carried through the operations that follow the statistics, each
 * adding its rounding, to the store. The rounding of the store is half a spacing at the largest value it can see. */

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
    return statistics_error(&b->arithmetic, b->c, &b->o->truth[truth], b->o->n_stats);
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
    struct approximate w = {fabs(nb_oracle_weight(b->o, param)), 0};
    if (!b->o->gamma || !b->c->formula.weight_offset) return w;
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
    const double g = nb_oracle_weight(b->o, param);
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

static enum nb_loss dyt_row(const struct nb_bound *b, int64_t row, const double *y, double *tolerance) {
    const struct nb_inputs *in = b->o->in;
    const struct nb_squash *exact = nb_squashed_row(b->o->squashed, row);
    const double alpha = b->c->alpha, u = b->arithmetic.op.u;
    const struct squasher q = {alpha, fabs(nb_round_to(alpha, NB_F32) - alpha), u > single_u ? 2 * u : u};
    enum nb_loss loss = NB_LOSS_NONE;
    for (int64_t i = 0; i < in->cols; i++) {
        const struct approximate a = squashed(b, &q, nb_get(in->x, row * in->cols + i, in->dtype), &exact[i]);
        tolerance[i] = limited(b, y[i], affine_tolerance(b, a, y[i], i) * slack, &loss);
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

/* A normalized row has a mean square of 1 (L2: a sum of squares), times the weights: may the errors have as much? */
static bool allows_everything(const struct nb_bound *b, const double *tolerance) {
    const int64_t cols = b->o->in->cols;
    const bool by_channel = b->c->op == NB_OP_BATCHNORM;
    double errors = 0, weights = 0;
    for (int64_t i = 0; i < cols; i++) {
        const double gamma = by_channel ? 1 : nb_oracle_weight(b->o, i);
        errors += tolerance[i] * tolerance[i];
        weights += gamma * gamma;
    }
    return weights > 0 && errors >= (b->c->op == NB_OP_L2NORM ? weights / (double)cols : weights);
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
    return loss == NB_LOSS_NONE && allows_everything(b, tolerance) ? NB_LOSS_UNBOUNDED : loss;
}
