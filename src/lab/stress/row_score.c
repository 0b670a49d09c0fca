// SPDX-License-Identifier: Apache-2.0
/* One oracle for all rows of the call, then each row on its own. */
#include "src/lab/stress/row_score.h"

#include <math.h>
#include <stdlib.h>

#include "src/accuracy/yardstick.h"
#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"

/* magnitude[i]: of y_i, or of what cancels in it: beta, and where the op centres the root mean square of gamma_i times the
 * normalized row, since an error of the mean is shared by all elements. */
static void row_magnitude(const struct nb_oracle *o, int64_t row, const double *y, double *magnitude) {
    double shared = 0;
    if (nb_op_centres(o->c->op)) {
        const struct nb_row_truth *t = nb_oracle_truth(o, row, 0);
        shared = sqrt(t->var) * t->scale;
    }
    for (int64_t i = 0; i < o->in->cols; i++) {
        magnitude[i] = fmax(fabs(y[i]), shared * fabs(nb_oracle_weight(o, i)));
        if (o->beta) magnitude[i] = fmax(magnitude[i], fabs(o->beta[i]));
    }
}

const char *const nb_measure_names[NB_N_MEASURES] = {"bound", "noise", "ulp", "scaled_ulp"};

struct row {
    struct nb_range range;                        /* that the kernel claims */
    double *want, *tolerance, *noise, *magnitude; /* one for each column */
    double noise_floor;
};

const char *nb_row_score_refuses(const struct nb_case *c) {
    if (c->pass != NB_FORWARD) return "searches judge y: forward kernels only";
    if (c->op == NB_OP_BATCHNORM) return "BatchNorm's statistics run over rows: searches change one row at a time";
    return c->op == NB_OP_COPY ? "a copy computes nothing" : NULL;
}

static void keep(struct nb_row_worst *w, double value, int64_t col, double got, double want) {
    if (isnan(value) || (w->col >= 0 && value <= w->value)) return;
    *w = (struct nb_row_worst){value, col, got, want};
}

static void mark_strange(struct nb_row_score *s, int64_t *count, int64_t col, double got, double want) {
    if (s->strange.col < 0) s->strange = (struct nb_row_worst){NAN, col, got, want};
    ++*count;
}

static void score_element(const struct row *r, enum nb_dtype dtype, int64_t i, double got, struct nb_row_score *s) {
    const double want = r->want[i], error = fabs(got - want), ulp = nb_ulp(want, dtype);
    const double coarse_ulp = nb_ulp(r->magnitude[i], dtype);
    const double noise = fmax(fmax(r->noise[i], r->noise_floor), coarse_ulp / 2);
    const double allowed = fmax(nb_granted_ulp(dtype) * coarse_ulp, NB_GRANTED_NOISE * noise);
    if (!(fabs(want) < nb_formats[dtype].overflow)) return; /* Inf or NaN is right there */
    if (isnan(got)) mark_strange(s, &s->n_nan, i, got, want);
    if (isinf(got)) mark_strange(s, &s->n_inf, i, got, want);
    if (!isfinite(got)) return;
    if (error > allowed && got == 0) mark_strange(s, &s->n_zero, i, got, want);
    if (isfinite(r->tolerance[i])) keep(&s->worst[NB_BY_BOUND], error / r->tolerance[i], i, got, want);
    keep(&s->worst[NB_BY_NOISE], error / noise, i, got, want);
    keep(&s->worst[NB_BY_ULP], error / ulp, i, got, want);
    keep(&s->worst[NB_BY_SCALED], error / coarse_ulp, i, got, want);
    s->accurate = fmax(s->accurate, error / allowed);
}

/* The part of the error that is proportional to the normalized value: the scale's. beta is no part of it. */
static void fit_gain(const struct nb_trial *t, const struct nb_oracle *o, const struct row *r, int64_t row,
                     struct nb_row_score *s) {
    const struct nb_row_truth *truth = nb_oracle_truth(o, row, 0);
    const bool visible = t->in.dtype == NB_F32 || t->c.stats_dtype == NB_STATS_X;
    double product = 0, squares = 0;
    for (int64_t i = 0; i < t->in.cols; i++) {
        const double got = nb_trial_y(t, row, i), y = r->want[i] - (o->beta ? o->beta[i] : 0);
        if (!isfinite(got) || !isfinite(y)) continue;
        product += (got - r->want[i]) * y;
        squares += y * y;
    }
    const double gain = squares > 0 ? product / squares : NAN, w = truth->var / (truth->var + t->c.eps);
    s->gain_u = gain / nb_formats[t->in.dtype].unit_roundoff;
    s->sum_error_u = w > 0.5 && visible ? -2 * s->gain_u / w : NAN;
}

static bool is_claimed(const struct nb_range *range, const struct nb_trial *t, const struct nb_row_truth *truth) {
    const bool centres = nb_op_centres(t->c.op);
    const double rms = sqrt(truth->mean_square);
    if (rms < range->min_rms || truth->max_abs > range->max_abs) return false;
    return !centres || !(fabs(truth->mean) > range->max_rho * sqrt(truth->var));
}

/* An error of the mean hits all elements alike, so that the noise of the row as a whole is what it is held against. */
static double shared_noise(const struct nb_trial *t, const double *noise) {
    double squares = 0;
    if (t->c.op != NB_OP_LAYERNORM && t->c.op != NB_OP_ADD_LAYERNORM) return 0;
    for (int64_t i = 0; i < t->in.cols; i++) squares += noise[i] * noise[i];
    return sqrt(squares / (double)t->in.cols);
}

static void score_row(const struct nb_trial *t, const struct nb_bound *b, struct row *r, int64_t row,
                      struct nb_row_score *s) {
    const struct nb_row_worst none = {.value = NAN, .col = -1};
    *s = (struct nb_row_score){.strange = none};
    for (int m = 0; m < NB_N_MEASURES; m++) s->worst[m] = none;
    nb_oracle_row(b->o, row, r->want);
    s->loss = nb_bound_row(b, row, r->want, r->tolerance);
    nb_input_noise(b->o, row, r->noise);
    row_magnitude(b->o, row, r->want, r->magnitude);
    r->noise_floor = shared_noise(t, r->noise);
    for (int64_t i = 0; i < t->in.cols; i++) score_element(r, t->in.dtype, i, nb_trial_y(t, row, i), s);
    s->claimed = t->c.op == NB_OP_DYT || is_claimed(&r->range, t, nb_oracle_truth(b->o, row, 0));
    if (t->c.op != NB_OP_DYT) fit_gain(t, b->o, r, row, s);
    if ((s->loss == NB_LOSS_NONE || s->loss == NB_LOSS_UNBOUNDED) && s->n_nan + s->n_inf > 0) {
        s->worst[NB_BY_BOUND] = s->strange;
        s->worst[NB_BY_BOUND].value = INFINITY;
    }
}

int nb_row_score(struct nb_trial *t, struct nb_row_score *scores) {
    const unsigned long long cols = (unsigned long long)t->in.cols;
    struct nb_oracle oracle released_by(nb_oracle_release);
    struct nb_bound bound released_by(nb_bound_release) = {0};
    if (nb_oracle_init(&oracle, &t->c, &t->in) != 0)
        return t->reason = "the oracle does not run with subnormals flushed", -1;
    nb_bound_init(&bound, &t->c, &oracle, nb_kernel_chain(t->entry->kernel, &t->call));
    double *space freed = nb_alloc(4 * cols, sizeof *space);
    struct row r = {.want = space, .tolerance = space + cols, .noise = space + 2 * cols, .magnitude = space + 3 * cols};
    nb_kernel_range(t->entry->kernel, &t->call, &r.range);
    for (int64_t row = 0; row < t->in.rows; row++) score_row(t, &bound, &r, row, &scores[row]);
    return 0;
}
