// SPDX-License-Identifier: Apache-2.0
/* Two sweeps: the sum, then the squares about the rounded mean, from which the square of what the rounding left is taken.
 * Values that are only bounded elsewhere (mean |x|, extremes) are plain sums. */
#include "src/accuracy/truth.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/twofold.h"

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
double nb_truth_stored_sum(const struct nb_inputs *in, int64_t i) {
    return nb_round_to(nb_get(in->x, i, in->dtype) + nb_get(in->residual, i, in->dtype), in->dtype);
}

void nb_truth_row(const struct nb_case *c, const struct nb_inputs *in, int64_t row, double *v) {
    const int64_t first = row * in->cols, n = in->cols;
    nb_truth_widen(in->x, first, n, in->dtype, v);
    if ((c->op != NB_OP_ADD_RMSNORM && c->op != NB_OP_ADD_LAYERNORM) || c->pass == NB_BACKWARD) return;
    const enum nb_dtype sum_dtype = c->formula.round_sum ? in->dtype : NB_F32;
    for (int64_t i = 0; i < n; i++) v[i] = nb_round_to(v[i] + nb_get(in->residual, first + i, in->dtype), sum_dtype);
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

/* ---- one row or channel, gathered piece by piece --------------------------------------------------------------------- */

struct sums {
    struct nb_sum sum, squares;
    double abs, min, max, first;
    int64_t n;
};

static void first_sweep(struct sums *s, const double *x, int64_t n) {
    if (s->n == 0) s->first = s->min = s->max = x[0];
    nb_sum_add(&s->sum, x, n);
    double abs_sum = 0, min = s->min, max = s->max;
    for (int64_t i = 0; i < n; i++) {
        abs_sum += fabs(x[i]);
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }
    s->abs += abs_sum;
    s->min = min;
    s->max = max;
    s->n += n;
}

static struct nb_twofold over(struct nb_twofold sum, double n) { return nb_twofold_div(sum, nb_twofold_of(n)); }

static void set_mean(struct nb_row_truth *t, const struct sums *s) {
    const double n = (double)s->n;
    *t = (struct nb_row_truth){.mean_abs = s->abs / n, .min = s->min, .max = s->max, .first = s->first};
    t->max_abs = fmax(fabs(s->min), fabs(s->max));
    if (isfinite(s->abs)) {
        struct nb_twofold mean = over(nb_sum_total(&s->sum), n);
        t->mean = mean.hi;
        t->mean_lo = mean.lo;
        return;
    }
    double sum = 0; /* Inf or NaN among the elements: no error terms, only what the sum itself is */
    for (int i = 0; i < 4; i++) sum += s->sum.hi[i / 2][i % 2];
    t->mean = sum / n;
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
    struct sums s = {.n = 0};
    first_sweep(&s, x, n);
    set_mean(t, &s);
    if (!isfinite(s.abs))
        set_not_finite(t, nb_op_centres(c->op));
    else if (nb_op_centres(c->op)) {
        nb_sum_add_squares_about(&s.squares, x, n, t->mean);
        set_variance(t, nb_sum_total(&s.squares), (double)n);
    } else {
        nb_sum_add_squares(&s.squares, x, n);
        set_squares(t, c, nb_sum_total(&s.squares), (double)n);
    }
    set_scale(t, c);
}

/* ---- BatchNorm ------------------------------------------------------------------------------------------------------- */

/* Columns of NHWC: each has accumulators of its own. Returns the sums in plain pairs. */
struct column {
    struct nb_twofold sum, squares;
    struct sums s; /* abs, extremes, n */
};

static void column_add(struct column *col, double x) {
    struct sums *s = &col->s;
    if (s->n++ == 0) s->first = s->min = s->max = x;
    nb_accumulate(&col->sum, x, 0.0);
    s->abs += fabs(x);
    if (x < s->min) s->min = x;
    if (x > s->max) s->max = x;
}

static void channels_last_truth(struct nb_row_truth *truth, const struct nb_case *c, const struct nb_inputs *in,
                                double *row) {
    const int64_t channels = c->shape.c;
    struct column *cols = nb_alloc((unsigned long long)channels, sizeof *cols);
    for (int64_t r = 0; r < in->rows; r++) {
        nb_truth_row(c, in, r, row);
        for (int64_t i = 0; i < channels; i++) column_add(&cols[i], row[i]);
    }
    for (int64_t i = 0; i < channels; i++) {
        cols[i].s.sum.hi[0][0] = cols[i].sum.hi;
        cols[i].s.sum.lo[0][0] = cols[i].sum.lo;
        set_mean(&truth[i], &cols[i].s);
    }
    for (int64_t r = 0; r < in->rows; r++) {
        nb_truth_row(c, in, r, row);
        for (int64_t i = 0; i < channels; i++) {
            struct nb_twofold square = nb_square_about(row[i], truth[i].mean);
            nb_accumulate(&cols[i].squares, square.hi, square.lo);
        }
    }
    for (int64_t i = 0; i < channels; i++) {
        if (!isfinite(cols[i].s.abs))
            set_not_finite(&truth[i], true);
        else
            set_variance(&truth[i], nb_twofold_renormalize(cols[i].squares.hi, cols[i].squares.lo),
                         (double)cols[i].s.n);
    }
    free(cols);
}

static void planes_truth(struct nb_row_truth *t, const struct nb_case *c, const struct nb_inputs *in, int64_t channel,
                         double *row) {
    struct sums s = {.n = 0};
    for (int64_t r = channel; r < in->rows; r += c->shape.c) {
        nb_truth_row(c, in, r, row);
        first_sweep(&s, row, in->cols);
    }
    set_mean(t, &s);
    if (!isfinite(s.abs)) {
        set_not_finite(t, true);
        return;
    }
    for (int64_t r = channel; r < in->rows; r += c->shape.c) {
        nb_truth_row(c, in, r, row);
        nb_sum_add_squares_about(&s.squares, row, in->cols, t->mean);
    }
    set_variance(t, nb_sum_total(&s.squares), (double)s.n);
}

static void batchnorm_truth(struct nb_row_truth *truth, const struct nb_case *c, const struct nb_inputs *in,
                            double *row) {
    const int64_t channels = c->shape.c;
    if (c->mode == NB_INFERENCE) {
        for (int64_t i = 0; i < channels; i++)
            truth[i] = (struct nb_row_truth){.mean = in->running_mean[i], .var = in->running_var[i]};
    } else if (c->shape.layout == NB_NHWC) {
        channels_last_truth(truth, c, in, row);
    } else {
        for (int64_t i = 0; i < channels; i++) planes_truth(&truth[i], c, in, i, row);
    }
    for (int64_t i = 0; i < channels; i++) set_scale(&truth[i], c);
}

void nb_truth_fill(struct nb_row_truth *truth, int64_t n_truth, const struct nb_case *c, const struct nb_inputs *in) {
    if (c->op == NB_OP_COPY || c->op == NB_OP_DYT) return;
    double *row = nb_alloc((unsigned long long)in->cols, sizeof *row);
    if (c->op == NB_OP_BATCHNORM)
        batchnorm_truth(truth, c, in, row);
    else {
        for (int64_t r = 0; r < n_truth; r++) {
            nb_truth_row(c, in, r, row);
            nb_truth_of_row(&truth[r], c, row, nb_truth_elements(c));
        }
    }
    free(row);
}
