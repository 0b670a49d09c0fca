// SPDX-License-Identifier: Apache-2.0
/* Two sweeps: the sum, then the squares about the rounded mean, from which the square of what the rounding left is taken.
 * Values that are only bounded elsewhere (mean |x|, extremes) are plain sums. */
#include "src/accuracy/oracle.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/core/bits.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/twofold.h"

/* ---- statistics ------------------------------------------------------------------------------------------------------ */

int64_t nb_truth_elements(const struct nb_case *c) {
    if (c->op == NB_OP_BATCHNORM) return c->shape.n * c->shape.hw;
    if (c->op == NB_OP_PRMSNORM && c->k >= 1 && c->k < c->shape.cols) return c->k;
    return c->shape.cols;
}

void nb_truth_widen(const void *array, int64_t first, int64_t n, enum nb_dtype dtype, double *out) {
    const float *f32 = (const float *)array + first;
    const uint16_t *narrow = (const uint16_t *)array + first;
    switch (dtype) {
    case NB_F32:
        for (int64_t i = 0; i < n; i++) out[i] = f32[i];
        break;
    case NB_F16:
        for (int64_t i = 0; i < n; i++) out[i] = nb_f16_decode(narrow[i]);
        break;
    case NB_BF16:
        for (int64_t i = 0; i < n; i++) out[i] = nb_bf16_decode(narrow[i]);
        break;
    default:
        assert(!"dtype");
    }
}

/* A sum of two numbers of p <= 24 bits, rounded to 53 bits and then to p, is rounded as if at once (53 >= 2 p + 2). */
static double sum_of(const struct nb_inputs *in, int64_t i, enum nb_dtype dtype) {
    return nb_round_to(nb_get(in->x, i, in->dtype) + nb_get(in->residual, i, in->dtype), dtype);
}

void nb_truth_row(const struct nb_case *c, const struct nb_inputs *in, int64_t row, double *v) {
    const int64_t first = row * in->cols, n = in->cols;
    nb_truth_widen(in->x, first, n, in->dtype, v);
    if (!nb_op_adds(c->op) || c->pass == NB_BACKWARD) return;
    const enum nb_dtype sum_dtype = c->formula.round_sum ? in->dtype : NB_F32;
    for (int64_t i = 0; i < n; i++) v[i] = sum_of(in, first + i, sum_dtype);
}

/* ---- scale ----------------------------------------------------------------------------------------------------------- */

static struct nb_twofold root(struct nb_twofold v) {
    return v.hi > 0 && isfinite(v.hi) ? nb_twofold_sqrt(v) : nb_twofold_of(sqrt(v.hi));
}

static struct nb_twofold denominator(struct nb_twofold v, const struct nb_case *c) {
    const struct nb_twofold eps = nb_twofold_of(c->eps);
    if (!isfinite(v.hi)) v = nb_twofold_of(v.hi); /* Inf or NaN, and no pair */
    switch (c->formula.eps_place) {
    case NB_EPS_OUTSIDE:
        return isfinite(v.hi) ? nb_twofold_add(root(v), eps) : root(v);
    case NB_EPS_CLAMP:
        return sqrt(v.hi) < c->eps ? eps : root(v);
    default:
        return isfinite(v.hi) ? root(nb_twofold_add(v, eps)) : root(v);
    }
}

static void set_scale(struct nb_row_truth *t, const struct nb_case *c) {
    struct nb_twofold s = denominator((struct nb_twofold){t->var, t->var_lo}, c);
    bool ordinary = s.hi > 0 && isfinite(s.hi);
    struct nb_twofold scale = ordinary ? nb_twofold_div(nb_twofold_of(1.0), s) : nb_twofold_of(1.0 / s.hi);
    t->scale = scale.hi;
    t->scale_lo = scale.lo;
}

/* ---- one row or channel ----------------------------------------------------------------------------------------------- */

static struct nb_twofold over(struct nb_twofold sum, double n) { return nb_twofold_div(sum, nb_twofold_of(n)); }

/* All that one sweep over the elements gives. */
static void set_mean(struct nb_row_truth *t, const double *x, int64_t n) {
    struct nb_sum sum = {0};
    double abs = 0, min = x[0], max = x[0];
    nb_sum_add(&sum, x, n);
    for (int64_t i = 0; i < n; i++) {
        abs += fabs(x[i]);
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }
    *t = (struct nb_row_truth){.mean_abs = abs / (double)n, .min = min, .max = max, .first = x[0]};
    t->max_abs = fmax(fabs(min), fabs(max));
    if (isfinite(abs)) {
        struct nb_twofold mean = over(nb_sum_total(&sum), (double)n);
        t->mean = mean.hi;
        t->mean_lo = mean.lo;
        return;
    }
    for (int i = 0; i < 4; i++) t->mean += sum.hi[i / 2][i % 2]; /* Inf or NaN: only what the sum itself is */
    t->mean /= (double)n;
}

/* squares: of the distances from t->mean. */
static void set_variance(struct nb_row_truth *t, struct nb_twofold squares, double n) {
    struct nb_twofold var = nb_twofold_sub(over(squares, n), nb_two_product(t->mean_lo, t->mean_lo));
    if (var.hi < 0) var = nb_twofold_of(0.0);
    t->var = var.hi;
    t->var_lo = var.lo;
    t->mean_square = t->var + t->mean * t->mean;
}

static void set_not_finite(struct nb_row_truth *t, bool centred) {
    if (!centred) t->mean = 0;
    t->var = centred || isnan(t->mean_abs) ? NAN : INFINITY; /* (Inf - mean)^2 is NaN, Inf^2 is Inf */
    t->mean_square = isnan(t->mean_abs) ? NAN : INFINITY;
}

/* Sum of squares or their mean. */
static void set_squares(struct nb_row_truth *t, const struct nb_case *c, struct nb_twofold squares, double n) {
    struct nb_twofold mean = over(squares, n), var = c->op == NB_OP_L2NORM ? squares : mean;
    t->mean = t->mean_lo = 0;
    t->var = var.hi;
    t->var_lo = var.lo;
    t->mean_square = mean.hi;
}

void nb_truth_of_row(struct nb_row_truth *t, const struct nb_case *c, const double *x, int64_t n) {
    struct nb_sum squares = {0};
    const bool centred = nb_op_centres(c->op);
    set_mean(t, x, n);
    if (!isfinite(t->mean_abs))
        set_not_finite(t, centred);
    else if (centred) {
        nb_sum_add_squares_about(&squares, x, n, t->mean);
        set_variance(t, nb_sum_total(&squares), (double)n);
    } else {
        nb_sum_add_squares(&squares, x, n);
        set_squares(t, c, nb_sum_total(&squares), (double)n);
    }
    set_scale(t, c);
}

void nb_truth_channel(const struct nb_case *c, const struct nb_inputs *in, const void *tensor, int64_t channel,
                      double *v) {
    const bool last = c->shape.layout == NB_NHWC;
    const int64_t step = last ? 1 : c->shape.c, n = last ? 1 : in->cols;
    for (int64_t r = last ? 0 : channel; r < in->rows; r += step, v += n)
        nb_truth_widen(tensor, r * in->cols + (last ? channel : 0), n, in->dtype, v);
}

static void fill_truth(struct nb_row_truth *truth, int64_t n_truth, const struct nb_case *c,
                       const struct nb_inputs *in) {
    const int64_t n = nb_truth_elements(c);
    const bool by_channel = c->op == NB_OP_BATCHNORM;
    if (c->op == NB_OP_COPY || c->op == NB_OP_DYT) return;
    double *x freed = nb_alloc((unsigned long long)(n > in->cols ? n : in->cols), sizeof *x);
    for (int64_t i = 0; i < n_truth; i++) {
        if (by_channel && c->mode == NB_INFERENCE) {
            truth[i] = (struct nb_row_truth){.mean = in->running_mean[i], .var = in->running_var[i]};
            set_scale(&truth[i], c);
            continue;
        }
        if (by_channel)
            nb_truth_channel(c, in, in->x, i, x);
        else
            nb_truth_row(c, in, i, x);
        nb_truth_of_row(&truth[i], c, x, n);
    }
}

/* ---- tanh ------------------------------------------------------------------------------------------------------------ */

/* With e = exp(-2 |t|): tanh = (1 - e) / (1 + e), 1 - tanh^2 = 4 e / (1 + e)^2. For small t 1 - e comes from expm1; for large t
 * the rounding error of t itself, which e has 2 |t| times, is put back. */

static struct nb_squash squash(double alpha, double x) {
    const struct nb_twofold t = nb_two_product(alpha, x);
    const double size = fabs(t.hi);
    double e, complement; /* 1 - e */
    if (size < 1) {
        complement = -expm1(-2 * size);
        e = 1 - complement;
    } else {
        const double rest = !isfinite(t.lo) ? 0 : signbit(t.hi) ? -t.lo : t.lo; /* of |t| */
        e = exp(-2 * size) * (1 - 2 * rest);
        complement = 1 - e;
    }
    return (struct nb_squash){.tanh = copysign(complement / (1 + e), t.hi), .slope = 4 * e / ((1 + e) * (1 + e))};
}

struct nb_squashed_rows {
    double alpha;
    const struct nb_inputs *in;
    int64_t row; /* -1: none yet */
    struct nb_squash of[];
};

struct nb_squashed_rows *nb_squashed_rows_new(double alpha, const struct nb_inputs *in) {
    struct nb_squashed_rows *kept = nb_alloc(1, sizeof *kept + (size_t)in->cols * sizeof kept->of[0]);
    kept->alpha = alpha;
    kept->in = in;
    kept->row = -1;
    return kept;
}

const struct nb_squash *nb_squashed_row(struct nb_squashed_rows *kept, int64_t row) {
    const struct nb_inputs *in = kept->in;
    for (int64_t i = 0; kept->row != row && i < in->cols; i++)
        kept->of[i] = squash(kept->alpha, nb_get(in->x, row * in->cols + i, in->dtype));
    kept->row = row;
    return kept->of;
}

/* ---- the oracle ------------------------------------------------------------------------------------------------------ */

/* Two evaluations of each element. The plain one, in double with exact statistics rounded once, has a few 2^-53 of error
 * relative to gamma * xhat, which is enough wherever beta does not cancel it. Elsewhere the careful one carries pairs of
 * doubles through to the end. */

/* By what the arithmetic does, not by what fegetround() says: on x86 that asks the x87 unit. The volatile operands keep the
 * compiler from answering for the machine. */
int nb_oracle_environment(void) {
    volatile double smallest_normal = DBL_MIN, subnormal = 0x1p-1074, one = 1, tiny = 0x1p-60;
    if (smallest_normal / 2 == 0 || subnormal * 0x1p60 == 0)
        return nb_error(
            "subnormal numbers are flushed to zero in this thread (FTZ or DAZ of MXCSR, or FZ of FPCR, is set, as -ffast-math in "
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
    if (c->op == NB_OP_DYT) o->squashed = nb_squashed_rows_new(c->alpha, in);
    if (c->formula.affine != NB_AFFINE_NONE) o->gamma = widen_params(c, in->gamma_f32, in->gamma_x, in->n_params);
    if (c->formula.affine == NB_AFFINE_GAMMA_BETA) o->beta = widen_params(c, in->beta_f32, in->beta_x, in->n_params);
    fill_truth(o->truth, o->n_truth, c, in);
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

struct nb_twofold nb_exact_element(const struct nb_case *c, const struct nb_row_truth *t, double x, const double *gamma,
                                   const double *beta) {
    struct nb_twofold v = nb_twofold_sub(nb_twofold_of(x), (struct nb_twofold){t->mean, t->mean_lo});
    v = nb_twofold_mul(v, (struct nb_twofold){t->scale, t->scale_lo});
    if (gamma) v = nb_twofold_mul(v, c->formula.weight_offset ? nb_two_sum(1.0, *gamma) : nb_twofold_of(*gamma));
    return beta ? nb_twofold_add(v, nb_twofold_of(*beta)) : v;
}

/* Below an eighth of beta, what was cancelled is worth three bits or more. */
static double affine(const struct nb_oracle *o, const struct nb_row_truth *t, double x, double xhat, int64_t param) {
    if (!o->gamma) return xhat;
    struct nb_twofold g = weight(o, param);
    double y = xhat * (g.hi + g.lo);
    if (!o->beta) return y;
    y += o->beta[param];
    bool cancelled = fabs(y) < fabs(o->beta[param]) / 8;
    if (!cancelled || !t || !isfinite(t->scale)) return y;
    const struct nb_twofold careful = nb_exact_element(o->c, t, x, &o->gamma[param], &o->beta[param]);
    return careful.hi + careful.lo;
}

static double element(const struct nb_oracle *o, const struct nb_row_truth *t, double x, int64_t param) {
    double d = (x - t->mean) - t->mean_lo;
    return affine(o, t, x, d * t->scale, param);
}

/* tanh(alpha x) as a pair: below 2^-16 by its series, else in long double, on x86 to 2^-63. */
static struct nb_twofold tanh_of(double alpha, double x) {
    const struct nb_twofold t = nb_two_product(alpha, x);
    if (fabs(t.hi) < 0x1p-16) return nb_twofold_add(t, nb_twofold_of(-t.hi * t.hi * t.hi / 3));
    const long double exact = tanhl((long double)alpha * (long double)x);
    return (struct nb_twofold){(double)exact, (double)(exact - (double)exact)};
}

/* So near to the middle of two numbers of the dtype that a double may lie on its other side. */
static bool is_tie(double y, enum nb_dtype dtype) {
    const double steps = fabs(y) / nb_ulp(y, dtype);
    return isfinite(steps) && fabs(steps - floor(steps) - 0.5) < 1e-8;
}

/* Where beta cancels, and at ties: there the last bit is set where the pair has more (rounding to odd), so that no second rounding takes
 * it for the tie itself. */
static double dyt_element(const struct nb_oracle *o, double x, double xhat, int64_t param) {
    const double y = affine(o, NULL, x, xhat, param);
    const bool cancelled = o->beta && fabs(y) < fabs(o->beta[param]) / 8, tie = is_tie(y, o->in->dtype);
    if (!cancelled && !tie) return y;
    struct nb_twofold v = nb_twofold_mul(tanh_of(o->c->alpha, x), weight(o, param));
    if (o->beta) v = nb_twofold_add(v, nb_twofold_of(o->beta[param]));
    const bool even = !(nb_double_bits(v.hi) & 1);
    return tie && even && v.lo != 0 ? nextafter(v.hi, v.lo > 0 ? INFINITY : -INFINITY) : v.hi + v.lo;
}

void nb_oracle_row(const struct nb_oracle *o, int64_t row, double *y) {
    const struct nb_case *c = o->c;
    const int64_t cols = o->in->cols;
    nb_truth_row(c, o->in, row, y);
    if (c->op == NB_OP_COPY) return;
    if (c->op == NB_OP_DYT) {
        const struct nb_squash *squashed = nb_squashed_row(o->squashed, row);
        for (int64_t i = 0; i < cols; i++) y[i] = dyt_element(o, y[i], squashed[i].tanh, i);
        return;
    }
    const bool by_channel = c->op == NB_OP_BATCHNORM, by_column = by_channel && c->shape.layout == NB_NHWC;
    const struct nb_row_truth *t = nb_oracle_truth(o, row, 0);
    const int64_t channel = t - o->truth;
    for (int64_t i = 0; i < cols; i++)
        y[i] = element(o, by_column ? &o->truth[i] : t, y[i], by_channel && !by_column ? channel : i);
}

void nb_oracle_residual_row(const struct nb_oracle *o, int64_t row, double *sum) {
    for (int64_t i = 0; i < o->in->cols; i++) sum[i] = sum_of(o->in, row * o->in->cols + i, o->in->dtype);
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
    nb_free_all(o->truth, o->squashed, o->gamma, o->beta);
    *o = (struct nb_oracle){0};
}
