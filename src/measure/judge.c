// SPDX-License-Identifier: Apache-2.0
/* Every output of a call against the oracle: y element by element within the bound and without a one-sided drift, then what
 * stands beside it. */
#include "src/measure/judge.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/bias.h"
#include "src/accuracy/gradient_bound.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"

struct subject {
    const struct nb_case *c;
    const struct nb_inputs *in;
    const struct nb_oracle *oracle;
    struct nb_checked *out;
};

bool nb_checked_fail(struct nb_checked *out, enum nb_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    out->status = status;
    vsnprintf(out->reason, sizeof out->reason, format, args);
    va_end(args);
    return false;
}

/* x + residual, rounded once to f32 and once to the dtype. */
static bool residual_is_right(const struct subject *s, const struct nb_buffers *b, double *want) {
    const struct nb_tensor *t = &b->tensors[NB_T_RESIDUAL_OUT];
    if (!t->data || s->c->op == NB_OP_COPY) return true;
    for (int64_t r = 0; r < t->rows; r++) {
        nb_oracle_residual_row(s->oracle, r, want);
        for (int64_t i = 0; i < t->cols; i++) {
            double got = nb_get(nb_tensor_row(t, r), i, s->in->dtype);
            if (got == want[i] || (isnan(got) && isnan(want[i]))) continue;
            const double slack = nb_ulp(want[i], s->in->dtype); /* the two roundings may fall on either side of a tie */
            if (fabs(got - want[i]) <= slack) continue;
            return nb_checked_fail(s->out, NB_INACCURATE, "residual_out[%lld][%lld] is %.9g, should be %.9g",
                                   (long long)r, (long long)i, got, want[i]);
        }
    }
    return true;
}

static bool running_is_right(const struct subject *s, const struct nb_buffers *b, const struct nb_bound *bound) {
    const struct nb_tensor *mean = &b->tensors[NB_T_RUNNING_MEAN_OUT], *var = &b->tensors[NB_T_RUNNING_VAR_OUT];
    if (!mean->data || !var->data) return true;
    double *want_mean freed = nb_alloc((unsigned long long)mean->cols, sizeof(double));
    double *want_var freed = nb_alloc((unsigned long long)mean->cols, sizeof(double));
    nb_oracle_running(s->oracle, want_mean, want_var);
    bool right = true;
    for (int64_t i = 0; i < mean->cols && right; i++) {
        const struct nb_running_error allowed = nb_bound_running(bound, i);
        double got_mean = ((const float *)mean->data)[i], got_var = ((const float *)var->data)[i];
        if (isinf(allowed.var) || !isfinite(want_mean[i]) || !isfinite(want_var[i])) continue;
        if (fabs(got_mean - want_mean[i]) <= allowed.mean && fabs(got_var - want_var[i]) <= allowed.var) continue;
        right = nb_checked_fail(s->out, NB_INACCURATE,
                                "running statistics of channel %lld are %.9g, %.9g, should be %.9g, %.9g", (long long)i,
                                got_mean, got_var, want_mean[i], want_var[i]);
    }
    return right;
}

/* ---- where the wrong elements lie ----------------------------------------------------------------------------------- */

struct spread {
    int64_t rows, cols, n, n_rows, first_row, last_row, first_col, last_col;
};

static void note_row(struct spread *s, int64_t row, const struct nb_row_values *v, enum nb_dtype dtype) {
    const int64_t before = s->n;
    for (int64_t i = 0; i < s->cols; i++) {
        const double got = nb_get(v->stored, i, dtype), want = v->exact[i];
        if (!(v->tolerance[i] < INFINITY) || fabs(got - want) <= v->tolerance[i]) continue;
        if (got == want || (isnan(got) && isnan(want)) || fabs(want) >= nb_formats[dtype].overflow) continue;
        if (s->n++ == 0 || i < s->first_col) s->first_col = i;
        if (s->n == 1 || i > s->last_col) s->last_col = i;
    }
    if (s->n == before) return;
    if (s->n_rows++ == 0) s->first_row = row;
    s->last_row = row;
}

/* "; all in the last row"; nothing where they lie anywhere, or where so few rows or columns tell nothing. */
enum { FEWEST_TO_TELL = 8 };
static void say_spread(const struct spread *s, char *text, size_t size) {
    const int64_t last = s->rows - 1, span = s->last_row - s->first_row + 1, width = s->last_col - s->first_col + 1;
    const bool solid = s->n_rows == span && s->rows >= FEWEST_TO_TELL && s->n_rows + 2 <= s->rows;
    int len = 0;
    *text = '\0';
    if (s->n == 0) return;
    if (solid && s->n_rows == 1 && s->first_row == 0)
        len = snprintf(text, size, "; all in the first row");
    else if (solid && s->n_rows == 1 && s->last_row == last)
        len = snprintf(text, size, "; all in the last row");
    else if (solid && s->last_row == last)
        len = snprintf(text, size, "; all in rows from %lld on", (long long)s->first_row);
    else if (solid && s->first_row == 0)
        len = snprintf(text, size, "; all in the first %lld rows", (long long)s->n_rows);
    if (width == s->cols || s->cols < FEWEST_TO_TELL || 10 * s->n < 9 * s->n_rows * width) return;
    if (width == 1)
        snprintf(text + len, size - (size_t)len, "%s column %lld", len ? ", in" : "; all in", (long long)s->first_col);
    else if (s->last_col == s->cols - 1)
        snprintf(text + len, size - (size_t)len, "%s columns from %lld on", len ? ", in" : "; all in",
                 (long long)s->first_col);
    else if (s->first_col == 0)
        snprintf(text + len, size - (size_t)len, "%s the first %lld columns", len ? ", in" : "; all in",
                 (long long)width);
}

/* A bound that allows everything allows no NaN or Inf where neither the row nor the format of the statistics is the reason. */
static void judge_broken(struct nb_checked *out, const struct nb_case *c) {
    const struct nb_evidence *e = &out->evidence;
    char what[80] = "";
    if (e->n_broken == 0 || !nb_status_timed(out->status)) return;
    if (nb_op_centres(c->op) && isinf(e->broken_rho))
        snprintf(what, sizeof what, ", whose elements are all equal");
    else if (nb_op_centres(c->op))
        snprintf(what, sizeof what, ", where mean/sd is %.4g", e->broken_rho);
    nb_checked_fail(out, NB_INACCURATE, "%s in %lld elements of finite rows inside the range of %s: row %lld%s",
                    e->n_nan == 0   ? "Inf"
                    : e->n_inf == 0 ? "NaN"
                                    : "NaN or Inf",
                    (long long)e->n_broken, e->is_declared ? "the kernel" : "f32", (long long)e->broken_row, what);
}

/* Sets the status that the accuracy of y or dx deserves; its bias has been judged. */
static void judge_accuracy(struct nb_checked *out, const struct spread *spread) {
    const struct nb_accuracy *a = &out->accuracy;
    char where[80];
    int64_t strange = a->nan_unexpected + a->inf_unexpected + a->zero_unexpected + a->nan_missing + a->inf_missing;
    if (strange > 0 || a->n_beyond > 0 || a->worst_ratio > 1) {
        say_spread(spread, where, sizeof where);
        nb_checked_fail(out, NB_INACCURATE, "%lld of %lld elements beyond the bound%s%s%s",
                        (long long)(a->n_beyond > strange ? a->n_beyond : strange), (long long)a->n,
                        a->nan_unexpected ? "; NaN where a number belongs" : "",
                        a->nan_missing + a->inf_missing ? "; a number where NaN or Inf belongs" : "", where);
    } else if (fabs(a->bias_sigma) > 6) {
        nb_checked_fail(
            out, NB_BIASED,
            "one-sided errors: bias %.3g u, last rounding %+.2f ulp, %.1f standard deviations from what rounding to "
            "nearest gives",
            a->bias_large_u, a->rounding_ulp, a->bias_sigma);
    } else if (a->n_rows_lost > 0 && a->loss == NB_LOSS_UNBOUNDED) {
        nb_checked_fail(
            out, NB_OUT_OF_RANGE,
            "%lld rows unbounded here: the error bound of the formula allows errors as large as the results",
            (long long)a->n_rows_lost);
    } else if (a->n_rows_lost > 0) {
        nb_checked_fail(
            out, NB_OUT_OF_RANGE, "%lld rows may be lost to %s, as the formula predicts%s", (long long)a->n_rows_lost,
            nb_loss_names[a->loss],
            a->loss == NB_LOSS_SQUARE_OVERFLOW ? "; to sum such rows again in double costs other rows nothing" : "");
    } else {
        out->status = NB_OK;
    }
}

/* Still the poison it was filled with? Then the kernel does not offer these statistics, as a simple plugin may. */
static bool is_untouched(const struct nb_tensor *t, uint32_t poison) {
    for (int64_t i = 0; i < t->cols; i++)
        if (memcmp((const float *)t->data + i, &poison, sizeof poison) != 0) return false;
    return true;
}

/* mean and rstd, which a backward pass reads. Ops that do not centre have no mean. */
static bool statistics_are_right(const struct subject *s, const struct nb_buffers *b, const struct nb_bound *bound) {
    const struct nb_tensor *mean = &b->tensors[NB_T_MEAN], *rstd = &b->tensors[NB_T_RSTD];
    const double u = nb_formats[NB_F32].unit_roundoff;
    const bool centred = nb_op_centres(s->c->op);
    if (!rstd->data || !mean->data || is_untouched(rstd, b->request.poison)) return true;
    for (int64_t i = 0; i < rstd->cols; i++) {
        const struct nb_row_truth *t = &s->oracle->truth[i];
        struct nb_statistics_error allowed = nb_bound_statistics(bound, i);
        double got_mean = ((const float *)mean->data)[i], got_rstd = ((const float *)rstd->data)[i];
        if (!isfinite(t->mean) || !isfinite(t->scale) || !isfinite(allowed.scale) || allowed.loss != NB_LOSS_NONE)
            continue;
        bool mean_right = !centred || fabs(got_mean - t->mean) <= allowed.mean + u * fabs(t->mean);
        if (mean_right && fabs(got_rstd / t->scale - 1) <= allowed.scale + 2 * u) continue;
        return nb_checked_fail(s->out, NB_INACCURATE,
                               "mean and rstd of row or channel %lld are %.9g, %.9g, should be %.9g, %.9g",
                               (long long)i, got_mean, got_rstd, centred ? t->mean : 0, t->scale);
    }
    return true;
}

/* ---- gradients of parameters ------------------------------------------------------------------------------------- */

/* What a parameter's gradient is compared with. */
struct wanted {
    const char *name;
    const struct nb_tensor *got;
    const double *want;
    enum nb_parameter parameter;
};

/* Where the exact gradient is no number, or its loss is predicted, any value is right. False where one is not: then it is named. */
static bool compare(const struct wanted *w, const struct nb_gradient_bound *bound, struct nb_parameter_error *error,
                    struct nb_checked *out) {
    double squares = 0, exact = 0;
    int64_t worst = -1;
    *error = (struct nb_parameter_error){.ratio = NAN, .norm_u = NAN};
    if (!w->got->data || !w->want) return true;
    for (int64_t i = 0; i < w->got->cols; i++) {
        const double allowed = nb_gradient_bound_parameter(bound, w->parameter, i),
                     off = fabs((double)((const float *)w->got->data)[i] - w->want[i]);
        if (!isfinite(w->want[i]) || !isfinite(allowed)) continue;
        const double ratio = off == 0 ? 0 : isnan(off) ? INFINITY : off / allowed;
        if (error->n++ == 0 || ratio > error->ratio) {
            error->ratio = ratio;
            worst = i;
        }
        squares += off * off;
        exact += w->want[i] * w->want[i];
    }
    if (error->n > 0) error->norm_u = squares > 0 ? sqrt(squares / exact) * 0x1p24 : isnan(squares) ? INFINITY : 0;
    if (error->n == 0 || error->ratio <= 1) return true;
    return nb_checked_fail(out, NB_INACCURATE, "%s[%lld] is %.9g, should be %.9g within %.3g", w->name,
                           (long long)worst, (double)((const float *)w->got->data)[worst], w->want[worst],
                           nb_gradient_bound_parameter(bound, w->parameter, worst));
}

static void judge_parameters(const struct nb_gradient_bound *bound, const struct nb_buffers *b,
                             struct nb_checked *out) {
    const struct nb_gradient *g = bound->g;
    const struct wanted dgamma = {"dgamma", &b->tensors[NB_T_DGAMMA], g->dgamma, NB_DGAMMA};
    const struct wanted dbeta = {"dbeta", &b->tensors[NB_T_DBETA], g->dbeta, NB_DBETA};
    const struct wanted dalpha = {"dalpha", &b->tensors[NB_T_DALPHA], g->c->op == NB_OP_DYT ? &g->dalpha : NULL,
                                  NB_DALPHA};
    struct nb_checked judged = *out; /* what dx says comes first */
    out->accuracy.has_parameters = true;
    compare(&dalpha, bound, &out->accuracy.dalpha, &judged);
    compare(&dbeta, bound, &out->accuracy.dbeta, &judged);
    compare(&dgamma, bound, &out->accuracy.dgamma, &judged);
    if (nb_status_timed(out->status) && judged.status == NB_INACCURATE)
        nb_checked_fail(out, NB_INACCURATE, "%s", judged.reason);
}

/* ---- the result, row by row -------------------------------------------------------------------------------------- */

/* What an Inf in a row gives depends on the order of evaluation, and any value is right; but a sum with a NaN is NaN in every order, and
 * so must y be. */
static void hold_to_nan(const struct nb_bound *bound, int64_t row, const double *want, double *tolerance) {
    if (bound->c->op == NB_OP_DYT || bound->c->op == NB_OP_COPY) return;
    for (int64_t i = 0; i < bound->o->in->cols; i++)
        if (isnan(want[i]) && isnan(nb_oracle_truth(bound->o, row, i)->mean_abs)) tolerance[i] = 0;
}

/* What a row should be, and how far off it may be: a reader for each direction. */
typedef enum nb_loss (*exact_row)(const void *bound, int64_t row, double *want, double *tolerance);

static enum nb_loss forward_row(const void *of, int64_t row, double *want, double *tolerance) {
    const struct nb_bound *bound = of;
    nb_oracle_row(bound->o, row, want);
    const enum nb_loss loss = nb_bound_row(bound, row, want, tolerance);
    if (loss == NB_LOSS_INPUT_NOT_FINITE) hold_to_nan(bound, row, want, tolerance);
    return loss;
}
static enum nb_loss backward_row(const void *of, int64_t row, double *want, double *tolerance) {
    const struct nb_gradient_bound *bound = of;
    const struct nb_gradient *g = bound->g;
    nb_gradient_row(g, row, want);
    const enum nb_loss loss = nb_gradient_bound_row(bound, row, want, tolerance);
    /* As above; the mean of |dy w| is that of all elements that dx has in it. */
    const struct nb_gradient_place at = nb_gradient_place_of(g->c, row);
    for (int64_t i = 0; g->rows && loss == NB_LOSS_INPUT_NOT_FINITE && i < at.n_coupled; i++)
        if (isnan(want[i]) && isnan(g->rows[at.stat + i * at.stat_step].mean_abs_g)) tolerance[i] = 0;
    return loss;
}

/* The oracle of a large tensor takes seconds on a CPU, and a device would wait for it. The first row, the
 * last, and one drawn from each of n parts. */
enum { LARGE_ELEMENTS = 1 << 20, SAMPLED_ELEMENTS = 1 << 18, FEWEST_ROWS = 8 };
struct sample {
    const struct nb_case *c;
    int64_t rows, n; /* n == rows: all */
};
static struct sample sample_of(const struct nb_case *c, const struct nb_tensor *t) {
    const int64_t fits = SAMPLED_ELEMENTS / t->cols, n = fits > FEWEST_ROWS ? fits : FEWEST_ROWS;
    const bool whole = nb_device_is_host(nb_device_of(c->backend)) || t->rows <= n ||
                       (double)t->rows * (double)t->cols <= LARGE_ELEMENTS;
    return (struct sample){c, t->rows, whole ? t->rows : n};
}
static bool is_sampled(const struct sample *s, int64_t row) {
    if (s->n == s->rows || row == 0 || row == s->rows - 1) return true;
    const int64_t part = row * s->n / s->rows, begin = (part * s->rows + s->n - 1) / s->n,
                  end = ((part + 1) * s->rows + s->n - 1) / s->n;
    const uint64_t drawn = nb_random_bits(nb_random_stream(s->c->seed, (uint64_t)s->rows), (uint64_t)part);
    return row == begin + (int64_t)(drawn % (uint64_t)(end - begin));
}
static bool is_finite(const void *row, int64_t cols, enum nb_dtype dtype) {
    bool finite = true;
    for (int64_t i = 0; i < cols; i++) finite &= isfinite(nb_get(row, i, dtype)) != 0;
    return finite;
}

struct reader {
    exact_row row;
    const void *bound;
    const struct nb_bias *bias;
};

static void judge_rows(const struct subject *s, const struct nb_buffers *b, const struct reader *reader,
                       struct nb_ratios *ratios, double *want) {
    const struct nb_tensor *result = nb_buffers_result(b, s->c);
    const struct sample sample = sample_of(s->c, result);
    double *tolerance freed = nb_alloc((unsigned long long)result->cols, sizeof(double));
    int64_t n_judged = 0;
    struct spread spread = {.rows = result->rows, .cols = result->cols};
    struct nb_accuracy_sum *sum = nb_accuracy_new(nb_number_of(s->in->dtype));
    struct nb_evidence_sum *evidence = nb_evidence_new(s->c, s->oracle, &s->out->evidence);
    for (int64_t r = 0; r < result->rows; r++) {
        const void *got = nb_tensor_row(result, r);
        if (!is_sampled(&sample, r) && is_finite(got, result->cols, s->in->dtype)) continue;
        n_judged++;
        const struct nb_row_values row = {.stored = got,
                                          .stored_x = nb_tensor_row(&b->tensors[NB_T_X], r),
                                          .exact = want,
                                          .tolerance = tolerance,
                                          .loss = reader->row(reader->bound, r, want, tolerance)};
        nb_accuracy_row(sum, r, result->cols, &row);
        note_row(&spread, r, &row, s->in->dtype);
        if (ratios->yardstick) nb_ratios_row(ratios, r, got, want);
        nb_evidence_row(evidence, r, got, want, tolerance);
    }
    s->out->rows_judged = n_judged < result->rows ? n_judged : 0;
    nb_accuracy_finish(sum, &s->out->accuracy);
    if (ratios->yardstick) nb_ratios_finish(ratios, &s->out->accuracy);
    nb_evidence_finish(evidence, &s->out->evidence);
    s->out->has_accuracy = true;
    if (nb_inputs_is_random(s->c)) nb_accuracy_judge_bias(&s->out->accuracy, s->in->dtype, reader->bias);
    judge_accuracy(s->out, &spread);
    judge_broken(s->out, s->c);
}

static void judge_backward(const struct subject *s, const struct nb_buffers *b, const struct nb_gradient *gradient,
                           bool flushes, double *want) {
    struct nb_gradient_bound bound released_by(nb_gradient_bound_release);
    struct nb_bias bias;
    nb_gradient_bound_init(&bound, s->c, gradient, s->c->recomputes ? s->oracle : NULL, s->out->chain,
                           s->out->column_chain, flushes);
    nb_bias_predict_gradient(s->c, gradient, &bias);
    judge_rows(s, b, &(struct reader){backward_row, &bound, &bias}, &(struct nb_ratios){0}, want);
    judge_parameters(&bound, b, s->out);
}

static void judge_forward(const struct subject *s, const struct nb_buffers *b, const struct nb_exact *exact,
                          double *want) {
    struct nb_bound bound released_by(nb_bound_release);
    struct nb_bias bias;
    nb_bound_init(&bound, s->c, s->oracle, s->out->chain);
    nb_bias_predict(&bound, &bias);
    judge_rows(s, b, &(struct reader){forward_row, &bound, &bias}, &(struct nb_ratios){.yardstick = exact->yardstick},
               want);
    if (nb_status_timed(s->out->status) && residual_is_right(s, b, want) && statistics_are_right(s, b, &bound))
        running_is_right(s, b, &bound);
}

void nb_judge(const struct nb_case *c, const struct nb_inputs *in, const struct nb_exact *exact, bool flushes,
              const struct nb_buffers *b, struct nb_checked *out) {
    const struct subject s = {c, in, exact->oracle, out};
    double *want freed = nb_alloc((unsigned long long)nb_buffers_result(b, c)->cols, sizeof(double));
    assert(exact->oracle && (c->pass == NB_FORWARD || exact->gradient));
    if (c->pass == NB_BACKWARD)
        judge_backward(&s, b, exact->gradient, flushes, want);
    else
        judge_forward(&s, b, exact, want);
}
