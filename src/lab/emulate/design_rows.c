// SPDX-License-Identifier: Apache-2.0
/* Rows drawn and read as inputs.c does it, for formats that no case has; and what a design makes of them, measured as a check does. */

#include <assert.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/params.h"
#include "src/core/random.h"
#include "src/core/stats.h"
#include "src/lab/emulate/emulate.h"

/* The streams of inputs.c, so that a case and a design with the same seed see the same numbers. */
enum { STREAM_X = 0, STREAM_GAMMA = 3, STREAM_BETA = 4 };

static double to_format(double v, enum nb_number number) { return nb_number_round(v, 0, number, NB_ROUND_NEAREST, 0); }

static void fill_x(struct nb_design_rows *r, const struct nb_design *d, const struct nb_source *s, uint64_t seed) {
    const struct nb_random random = nb_random_stream(seed, STREAM_X);
    const struct nb_draw draw = nb_draw_of(&s->recipe, &nb_numbers[d->store], r->cols, random);
    for (int64_t row = 0; row < r->rows; row++) {
        for (int64_t col = 0; col < r->cols; col++) {
            const double v = s->recipe.data ? nb_draw_value(s->recipe.data, &draw, row, col)
                                            : s->x.values[row % s->x.rows * r->cols + col];
            r->x[row * r->cols + col] = to_format(v, d->store);
        }
    }
}

/* Weights pass through f32, as the parameters of a case do. */
static double *parameters(const struct nb_design_rows *r, const struct nb_design *d, const struct nb_array *file,
                          uint64_t seed, int stream) {
    static const struct nb_params drawn = {.kind = NB_PARAMS_OF_DRAWS};
    const struct nb_random random = nb_random_stream(seed, (uint64_t)stream);
    const bool is_gamma = stream == STREAM_GAMMA;
    double *values = nb_alloc((unsigned long long)r->cols, sizeof *values);
    for (int64_t i = 0; i < r->cols; i++) {
        const double z = nb_random_normal(random, (uint64_t)i);
        const double v = file->rows ? file->values[i]
                         : is_gamma ? nb_params_gamma(&drawn, i, z)
                                    : nb_params_beta(&drawn, i, z);
        values[i] = to_format(to_format(v, NB_NUM_F32) - (is_gamma && d->weight_offset ? 1 : 0), d->weight);
    }
    return values;
}

int nb_design_data_resolve(struct nb_design_data *data) {
    int64_t rows, cols;
    char reason[1024];
    if (strlen(data->data) >= NB_DATA_MAX) return nb_error("data %.60s...: too long", data->data);
    if (nb_source_size(data->data, &rows, &cols, reason, sizeof reason) != 0) return nb_error("%s", reason);
    if (data->cols == 0) data->cols = cols > 0 ? cols : 4096;
    if (data->rows == 0) data->rows = rows > 0 && rows < 256 ? rows : rows > 0 ? 256 : 64;
    return 0;
}

int nb_design_rows_init(struct nb_design_rows *r, const struct nb_design *d, const struct nb_design_data *data) {
    assert(data->rows > 0 && data->cols > 0);
    struct nb_case c;
    struct nb_source source released_by(nb_source_release) = {0};
    char reason[1024];
    *r = (struct nb_design_rows){.rows = data->rows, .cols = data->cols, .affine = data->affine};
    if (r->affine == NB_N_AFFINES) r->affine = nb_usual_affine(d->op);
    nb_design_case(&c, d, data->rows, data->cols, r->affine);
    snprintf(c.data, sizeof c.data, "%s", data->data);
    if (nb_source_open(&source, &c, false, reason, sizeof reason) != 0) return nb_error("%s", reason);
    r->random = nb_inputs_is_random(&c) != 0;
    r->x = calloc((size_t)r->rows * (size_t)r->cols, sizeof *r->x);
    if (!r->x)
        return nb_error("no memory for %lld x %lld values; fewer --rows or a smaller --n", (long long)r->rows,
                        (long long)r->cols);
    fill_x(r, d, &source, data->seed);
    if (r->affine != NB_AFFINE_NONE) r->gamma = parameters(r, d, &source.gamma, data->seed, STREAM_GAMMA);
    if (r->affine == NB_AFFINE_GAMMA_BETA) r->beta = parameters(r, d, &source.beta, data->seed, STREAM_BETA);
    return 0;
}

void nb_design_rows_release(struct nb_design_rows *r) {
    nb_free_all(r->x, r->gamma, r->beta);
    *r = (struct nb_design_rows){0};
}

void nb_design_judge_init(struct nb_design_judge *j, const struct nb_design *d, const struct nb_design_rows *r,
                          int64_t chain) {
    nb_design_case(&j->c, d, r->rows, r->cols, r->affine);
    j->sizes =
        (struct nb_inputs){.dtype = (enum nb_dtype)j->c.dtype, .rows = r->rows, .cols = r->cols, .n_params = r->cols};
    j->oracle = (struct nb_oracle){.c = &j->c,
                                   .in = &j->sizes,
                                   .truth = nb_alloc((unsigned long long)r->rows, sizeof *j->oracle.truth),
                                   .n_truth = r->rows,
                                   .gamma = r->gamma,
                                   .beta = r->beta,
                                   .n_params = r->cols,
                                   .n_stats = nb_design_elements(d, r->cols)};
    nb_bound_init(&j->bound, &j->c, &j->oracle, chain);
}

void nb_design_judge_release(struct nb_design_judge *j) {
    nb_bound_release(&j->bound);
    free(j->oracle.truth);
}

/* ---- Two tolerances for each row. One ulp gives figures over every element, the lost ones too; the a-priori bound, where there is one,
 * gives the ratio to it. */

struct measurement {
    const struct nb_design *d;
    const struct nb_design_rows *rows;
    struct nb_design_report *report;
    struct nb_design_judge judge;
    double *y, *exact, *exact_low, *tolerance; /* of a row */
    double squared_error, squares;
    double rstd_sum, rstd_squares, n_rstd;
};

static void init(struct measurement *m) {
    const int64_t cols = m->rows->cols;
    nb_design_judge_init(&m->judge, m->d, m->rows, m->report->chain);
    m->y = nb_alloc((unsigned long long)cols, 4 * sizeof *m->y);
    m->exact = m->y + cols;
    m->exact_low = m->exact + cols;
    m->tolerance = m->exact_low + cols;
}

static void add_squares(struct measurement *m) {
    for (int64_t i = 0; i < m->rows->cols; i++) {
        const double error = (m->y[i] - m->exact[i]) - m->exact_low[i];
        if (!isfinite(error)) continue;
        m->squared_error += error * error;
        m->squares += m->exact[i] * m->exact[i];
    }
}

static void add_rstd(struct measurement *m, double computed, const struct nb_row_truth *t) {
    const double error = (computed - t->scale - t->scale_lo) / t->scale;
    if (!isfinite(error)) return;
    m->rstd_sum += error;
    m->rstd_squares += error * error;
    m->n_rstd++;
}

static void against_bound(struct measurement *m, int64_t row) {
    struct nb_accuracy *a = &m->report->accuracy;
    const enum nb_loss loss = nb_bound_row(&m->judge.bound, row, m->exact, m->tolerance);
    if (loss != NB_LOSS_NONE && a->n_rows_lost++ == 0) a->loss = loss;
    for (int64_t i = 0; i < m->rows->cols; i++) {
        const double error = fabs((m->y[i] - m->exact[i]) - m->exact_low[i]);
        if (isinf(m->tolerance[i])) continue;
        const double ratio = error == 0 ? 0 : isnan(error) ? INFINITY : error / m->tolerance[i];
        if (ratio > 1) a->n_beyond++;
        if (ratio > a->worst_ratio) a->worst_ratio = ratio;
    }
}

/* What bound and bias say goes into an accuracy that was finished without them. */
static void finish(struct measurement *m, struct nb_accuracy_sum *sum) {
    struct nb_design_report *r = m->report;
    const struct nb_accuracy bounded = r->accuracy;
    nb_accuracy_finish(sum, &r->accuracy);
    r->accuracy.worst_ratio = r->no_bound ? NAN : bounded.worst_ratio;
    r->accuracy.n_beyond = bounded.n_beyond;
    r->accuracy.n_rows_lost = bounded.n_rows_lost;
    r->accuracy.loss = bounded.loss;
    r->accuracy.reproducer.tolerance_ulp = NAN;
    if (!r->no_bound && m->rows->random) {
        struct nb_bias bias;
        nb_bias_predict(&m->judge.bound, &bias);
        nb_accuracy_judge_bias(&r->accuracy, m->judge.sizes.dtype, &bias);
    }
    const double u = nb_numbers[m->d->store].unit_roundoff, n = m->n_rstd, mean = m->rstd_sum / n;
    r->nmse = m->squares > 0 ? m->squared_error / m->squares : NAN;
    r->rstd_bias_u = n > 0 ? mean / u : NAN;
    r->rstd_sd_u = n > 1 ? sqrt(fmax(0, m->rstd_squares / n - mean * mean) * n / (n - 1)) / u : NAN;
}

void nb_design_measure(struct nb_design_report *report, const struct nb_design *d, const struct nb_design_rows *rows,
                       uint64_t seed) {
    *report = (struct nb_design_report){.no_bound = nb_design_unbounded(d)};
    report->chain = nb_design_chain(d, nb_design_elements(d, rows->cols));
    struct measurement m = {.d = d, .rows = rows, .report = report};
    struct nb_accuracy_sum *sum = nb_accuracy_new(d->store);
    init(&m);
    for (int64_t row = 0; row < rows->rows; row++) {
        const double *x = rows->x + row * rows->cols;
        struct nb_row_truth *t = &m.judge.oracle.truth[row];
        nb_exact_row(&m.judge.c, x, rows->gamma, rows->beta, t, m.exact, m.exact_low);
        const struct nb_emulated e =
            nb_emulate_row(d, rows->cols, x, rows->gamma, rows->beta, m.y, seed + (uint64_t)row);
        for (int64_t i = 0; i < rows->cols; i++)
            m.tolerance[i] = isfinite(m.exact[i]) ? nb_number_ulp(m.exact[i], d->store) : 0;
        const struct nb_row_values values = {
            .numbers = m.y, .numbers_x = x, .exact = m.exact, .exact_low = m.exact_low, .tolerance = m.tolerance};
        nb_accuracy_row(sum, row, rows->cols, &values);
        add_squares(&m);
        add_rstd(&m, e.rstd, t);
        if (!report->no_bound) against_bound(&m, row);
    }
    finish(&m, sum);
    nb_design_judge_release(&m.judge);
    free(m.y);
}

/* One pass for the scale, one for the errors. */

const char *const nb_quantum_names[] = {"e4m3", "e5m2", "int8", NULL};
const char *const nb_scaling_names[] = {"none", "tensor", "row", NULL};

/* Of the floating ones. */
static enum nb_number number_of(enum nb_quantum quantum) {
    return quantum == NB_QUANTUM_E4M3 ? NB_NUM_E4M3 : NB_NUM_E5M2;
}

static double largest_of(enum nb_quantum quantum) {
    return quantum == NB_QUANTUM_INT8 ? 127 : nb_numbers[number_of(quantum)].max_finite;
}

static bool is_beyond(double scaled, enum nb_quantum quantum) {
    if (quantum == NB_QUANTUM_INT8) return fabs(rint(scaled)) > 127;
    return !(fabs(scaled) < nb_numbers[number_of(quantum)].overflow);
}

static double rounded(double scaled, enum nb_quantum quantum) {
    if (quantum == NB_QUANTUM_INT8) return fmin(fmax(rint(scaled), -127), 127);
    return nb_number_round(scaled, 0, number_of(quantum), NB_ROUND_NEAREST, 0);
}

static double quantize_value(double v, double scale, enum nb_quantum quantum) {
    return rounded(v / scale, quantum) * scale;
}

/* From the largest magnitude; rows of zeros keep 1. */
static double scale_of(const double *values, int64_t n, enum nb_quantum quantum) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i])) largest = fmax(largest, fabs(values[i]));
    const double scale = nb_number_round(largest / largest_of(quantum), 0, NB_NUM_F32, NB_ROUND_NEAREST, 0);
    return scale > 0 ? scale : 1;
}

struct sums {
    double signal, noise, relative_noise, n_relative, relative, n_nonzero, n_lost, n_beyond;
};

static void add_row(struct nb_quantized *q, struct sums *s, const double *row, int64_t n, double scale,
                    enum nb_quantum quantum) {
    const double rms = nb_rms(row, n);
    for (int64_t i = 0; i < n; i++) {
        const double v = row[i];
        if (!isfinite(v)) {
            q->n_not_finite++;
            continue;
        }
        s->n_beyond += is_beyond(v / scale, quantum);
        const double stored = quantize_value(v, scale, quantum);
        const double error = isfinite(stored) ? stored - v : INFINITY; /* nothing is left of v */
        if (v != 0) s->n_nonzero++;
        if (v != 0 && stored == 0) s->n_lost++;
        s->signal += v * v;
        s->noise += error * error;
        if (rms > 0) {
            s->relative_noise += error / rms * (error / rms);
            s->n_relative++;
            q->max_error = fmax(q->max_error, fabs(error) / rms);
        }
        if (v != 0) s->relative += fabs(error / v);
        if (stored != 0) q->max_relative = fmax(q->max_relative, fabs(error / v));
    }
}

void nb_quantize(struct nb_quantized *q, const double *values, int64_t rows, int64_t cols, enum nb_quantum quantum,
                 enum nb_scaling scaling) {
    assert(rows > 0 && cols > 0 && quantum < NB_N_QUANTA && scaling < NB_N_SCALINGS);
    struct sums s = {0};
    *q = (struct nb_quantized){.n = rows * cols, .smallest_scale = INFINITY};
    const double whole = scaling == NB_SCALING_TENSOR ? scale_of(values, rows * cols, quantum) : 1;
    for (int64_t row = 0; row < rows; row++) {
        const double *v = values + row * cols, scale = scaling == NB_SCALING_ROW ? scale_of(v, cols, quantum) : whole;
        q->largest_scale = fmax(q->largest_scale, scale);
        q->smallest_scale = fmin(q->smallest_scale, scale);
        add_row(q, &s, v, cols, scale, quantum);
    }
    const double finite = (double)(q->n - q->n_not_finite);
    q->sqnr_db = s.noise > 0 ? 10 * log10(s.signal / s.noise) : s.signal > 0 ? INFINITY : NAN;
    q->rms_error = s.n_relative > 0 ? sqrt(s.relative_noise / s.n_relative) : NAN;
    q->mean_relative = s.n_nonzero > 0 ? s.relative / s.n_nonzero : NAN;
    q->lost = s.n_nonzero > 0 ? s.n_lost / s.n_nonzero : 0;
    q->beyond = finite > 0 ? s.n_beyond / finite : NAN;
}

const struct nb_member nb_quantized_members[] = {
    NB_MEMBER(COUNT, struct nb_quantized, n),
    NB_MEMBER(COUNT, struct nb_quantized, n_not_finite),
    NB_MEMBER(NUMBER, struct nb_quantized, sqnr_db),
    NB_MEMBER(NUMBER, struct nb_quantized, rms_error),
    NB_MEMBER(NUMBER, struct nb_quantized, max_error),
    NB_MEMBER(NUMBER, struct nb_quantized, max_relative),
    NB_MEMBER(NUMBER, struct nb_quantized, mean_relative),
    NB_MEMBER(NUMBER, struct nb_quantized, lost),
    NB_MEMBER(NUMBER, struct nb_quantized, beyond),
    NB_MEMBER(NUMBER, struct nb_quantized, smallest_scale),
    NB_MEMBER(NUMBER, struct nb_quantized, largest_scale),
    NB_MEMBERS_END,
};
