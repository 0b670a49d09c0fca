// SPDX-License-Identifier: Apache-2.0
/* Two streams side by side, one through the design, one through the exact norm; row by row, so that memory holds one row. */
#include "src/lab/emulate/depth.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/params.h"
#include "src/core/random.h"
#include "src/lab/emulate/design.h"
#include "src/lab/emulate/emulate.h"
#include "src/plan/inputs.h"

struct block {
    int64_t *place; /* P y at i is sign[i] y at place[i] */
    double *sign;
};

struct walk {
    const struct nb_design *d;
    const struct nb_design_rows *rows;
    const struct nb_depth_options *o;
    struct nb_case c;
    struct nb_rounder rounder; /* of the stream */
    struct block block;
    double step;                               /* of the row */
    double *x, *exact_x, *input, *y, *exact_y; /* of a row */
};

/* Sums over rows, after each block. */
struct sums {
    double gain, gain_squares, residual, gain_blocks, gain_blocks_squares, residual_blocks;
};

static void shuffle(struct block *b, int64_t n, uint64_t seed) {
    uint64_t state = seed;
    for (int64_t i = 0; i < n; i++) b->place[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t other = (int64_t)(nb_random_next(&state) % (uint64_t)(i + 1)), kept = b->place[i];
        b->place[i] = b->place[other];
        b->place[other] = kept;
    }
    for (int64_t i = 0; i < n; i++) b->sign[i] = nb_random_next(&state) & 1 ? 1 : -1;
}

static const double along_stream = 0.125, across_stream = 0.99215674164922147; /* sqrt(63/64) */

static double added(const struct walk *w, const double *y, int64_t i) {
    return w->step * (along_stream * y[i] + across_stream * w->block.sign[i] * y[w->block.place[i]]);
}

static double rms(const double *v, int64_t n) {
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += v[i] * v[i];
    return sqrt(squares / (double)n);
}

static void one_block(struct walk *w, int64_t row, int k) {
    const int64_t n = w->rows->cols;
    const uint64_t seed = w->o->seed + (uint64_t)row * (uint64_t)w->o->blocks + (uint64_t)k;
    for (int64_t i = 0; i < n; i++) w->input[i] = nb_number_round(w->x[i], 0, w->d->store, NB_ROUND_NEAREST, 0);
    nb_emulate_row(w->d, n, w->input, w->rows->gamma, w->rows->beta, w->y, seed);
    nb_exact_row(&w->c, w->exact_x, w->rows->gamma, w->rows->beta, NULL, w->exact_y, NULL);
    for (int64_t i = 0; i < n; i++) {
        w->x[i] = nb_rounded_add(&w->rounder, w->x[i], added(w, w->y, i), w->o->stream);
        w->exact_x[i] += added(w, w->exact_y, i);
    }
}

static void take_apart(const struct walk *w, struct sums *s) {
    const int64_t n = w->rows->cols;
    const double u = nb_numbers[w->d->store].unit_roundoff, along = rms(w->exact_x, n);
    double product = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) product += (w->x[i] - w->exact_x[i]) * w->exact_x[i];
    const double gain = product / ((double)n * along * along);
    for (int64_t i = 0; i < n; i++) {
        const double rest = w->x[i] - w->exact_x[i] - gain * w->exact_x[i];
        squares += rest * rest;
    }
    const double to_blocks = along / (w->step * rms(w->exact_y, n));
    const double g = gain / u, r2 = squares / ((double)n * along * along * u * u);
    s->gain += g;
    s->gain_squares += g * g;
    s->residual += r2;
    s->gain_blocks += g * to_blocks;
    s->gain_blocks_squares += g * g * to_blocks * to_blocks;
    s->residual_blocks += r2 * to_blocks * to_blocks;
}

/* ---- the curve --------------------------------------------------------------------------------------------------------- */

static void set_points(struct nb_depth *depth, const struct sums *sums, double n_rows) {
    for (int k = 0; k < depth->blocks; k++) {
        const struct sums *s = &sums[k];
        depth->points[k] = (struct nb_depth_point){.gain_u = s->gain / n_rows,
                                                   .gain_rms_u = sqrt(s->gain_squares / n_rows),
                                                   .residual_u = sqrt(s->residual / n_rows),
                                                   .gain_blocks_u = s->gain_blocks / n_rows,
                                                   .gain_rms_blocks_u = sqrt(s->gain_blocks_squares / n_rows),
                                                   .residual_blocks_u = sqrt(s->residual_blocks / n_rows)};
    }
}

enum figure { GAIN, GAIN_RMS, RESIDUAL };

static double figure_of(const struct nb_depth_point *p, enum figure figure, bool of_stream) {
    switch (figure) {
    case GAIN:
        return fabs(of_stream ? p->gain_u : p->gain_blocks_u);
    case GAIN_RMS:
        return of_stream ? p->gain_rms_u : p->gain_rms_blocks_u;
    default:
        return of_stream ? p->residual_u : p->residual_blocks_u;
    }
}

/* Slope of log figure over log k. */
static double exponent(const struct nb_depth *depth, enum figure figure, bool of_stream) {
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int k = depth->blocks / 8; k < depth->blocks; k++) {
        const double x = log(k + 1), y = log(figure_of(&depth->points[k], figure, of_stream));
        n++;
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    const double spread = n * sxx - sx * sx, slope = (n * sxy - sx * sy) / spread;
    return spread > 0 && isfinite(slope) ? slope : NAN;
}

/* Is the mean gain in the end more than what the rows' different gains leave to chance? */
static bool has_side(const struct nb_depth *depth, int64_t rows) {
    const struct nb_depth_point *p = &depth->points[depth->blocks - 1];
    const double variance = fmax(0, p->gain_rms_u * p->gain_rms_u - p->gain_u * p->gain_u);
    return rows > 1 && fabs(p->gain_u) > 3 * sqrt(variance / (double)(rows - 1));
}

int nb_depth_run(struct nb_depth *depth, const struct nb_design *d, const struct nb_design_rows *rows,
                 const struct nb_depth_options *o) {
    const int64_t n = rows->cols;
    *depth = (struct nb_depth){.blocks = o->blocks};
    assert(o->blocks >= 1 && o->step > 0);
    if (d->store == NB_NUM_F64)
        return nb_error("depth: the stream is followed in double, which cannot judge a design that stores f64");
    struct walk w = {.d = d, .rows = rows, .o = o, .rounder = {d->store_rounding, d->flush, o->seed}};
    struct sums *sums = nb_alloc((unsigned long long)o->blocks, sizeof *sums);
    depth->points = nb_alloc((unsigned long long)o->blocks, sizeof *depth->points);
    nb_design_case(&w.c, d, rows->rows, n, rows->affine);
    w.x = nb_alloc((unsigned long long)n, 6 * sizeof *w.x);
    w.exact_x = w.x + n;
    w.input = w.exact_x + n;
    w.y = w.input + n;
    w.exact_y = w.y + n;
    w.block = (struct block){nb_alloc((unsigned long long)n, sizeof *w.block.place), w.exact_y + n};
    for (int64_t row = 0; row < rows->rows; row++) {
        for (int64_t i = 0; i < n; i++) w.x[i] = w.exact_x[i] = rows->x[row * n + i];
        w.step = o->step * rms(w.x, n);
        for (int k = 0; k < o->blocks; k++) {
            shuffle(&w.block, n, nb_random_mix(o->seed) + (uint64_t)k);
            one_block(&w, row, k);
            take_apart(&w, &sums[k]);
        }
    }
    set_points(depth, sums, (double)rows->rows);
    const bool of_stream = o->stream != NB_NUM_F64;
    depth->gain_exponent = has_side(depth, rows->rows) ? exponent(depth, GAIN, of_stream) : NAN;
    depth->gain_rms_exponent = exponent(depth, GAIN_RMS, of_stream);
    depth->residual_exponent = exponent(depth, RESIDUAL, of_stream);
    free(w.block.place);
    free(w.x);
    free(sums);
    return 0;
}

/* ---- Draws and files as inputs.c has them, for formats that no case has. ---- */

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

static enum nb_affine usual_affine(enum nb_op op) {
    return op == NB_OP_LAYERNORM ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA;
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
    struct nb_source source;
    char reason[1024];
    *r = (struct nb_design_rows){.rows = data->rows, .cols = data->cols, .affine = data->affine};
    if (r->affine == NB_N_AFFINES) r->affine = usual_affine(d->op);
    nb_design_case(&c, d, data->rows, data->cols, r->affine);
    snprintf(c.data, sizeof c.data, "%s", data->data);
    if (nb_source_open(&source, &c, false, reason, sizeof reason) != 0) return nb_error("%s", reason);
    r->random = nb_inputs_is_random(&c) != 0;
    r->x = calloc((size_t)r->rows * (size_t)r->cols, sizeof *r->x);
    if (!r->x) {
        nb_source_release(&source);
        return nb_error("no memory for %lld x %lld values; fewer --rows or a smaller --n", (long long)r->rows,
                        (long long)r->cols);
    }
    fill_x(r, d, &source, data->seed);
    if (r->affine != NB_AFFINE_NONE) r->gamma = parameters(r, d, &source.gamma, data->seed, STREAM_GAMMA);
    if (r->affine == NB_AFFINE_GAMMA_BETA) r->beta = parameters(r, d, &source.beta, data->seed, STREAM_BETA);
    nb_source_release(&source);
    return 0;
}

void nb_design_rows_release(struct nb_design_rows *r) {
    free(r->x);
    free(r->gamma);
    free(r->beta);
    *r = (struct nb_design_rows){0};
}

/* ---- Two tolerances for each row. One ulp gives figures over every element, the lost ones too; the a-priori bound, where there is one,
 * gives the ratio to it. */

struct measurement {
    const struct nb_design *d;
    const struct nb_design_rows *rows;
    struct nb_design_report *report;
    struct nb_case c;
    struct nb_inputs shape; /* sizes alone: the bound needs no tensor */
    struct nb_oracle oracle;
    struct nb_bound bound;
    double *y, *exact, *exact_low, *tolerance; /* of a row */
    double squared_error, squares;
    double rstd_sum, rstd_squares, n_rstd;
};

static void init(struct measurement *m) {
    const int64_t rows = m->rows->rows, cols = m->rows->cols;
    nb_design_case(&m->c, m->d, rows, cols, m->rows->affine);
    m->shape = (struct nb_inputs){.dtype = (enum nb_dtype)m->c.dtype, .rows = rows, .cols = cols, .n_params = cols};
    m->oracle = (struct nb_oracle){.c = &m->c,
                                   .in = &m->shape,
                                   .truth = nb_alloc((unsigned long long)rows, sizeof *m->oracle.truth),
                                   .n_truth = rows,
                                   .gamma = m->rows->gamma,
                                   .beta = m->rows->beta,
                                   .n_params = cols,
                                   .n_stats = nb_design_elements(m->d, cols)};
    nb_bound_init(&m->bound, &m->c, &m->oracle, m->report->chain);
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
    const enum nb_loss loss = nb_bound_row(&m->bound, row, m->exact, m->tolerance);
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
    r->accuracy.witness.tolerance_ulp = NAN;
    if (!r->no_bound && m->rows->random) {
        struct nb_bias bias;
        nb_bias_predict(&m->bound, &bias);
        nb_accuracy_judge_bias(&r->accuracy, (enum nb_dtype)m->c.dtype, &bias);
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
        struct nb_row_truth *t = &m.oracle.truth[row];
        nb_exact_row(&m.c, x, rows->gamma, rows->beta, t, m.exact, m.exact_low);
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
    nb_bound_release(&m.bound);
    free(m.y);
    free(m.oracle.truth);
}
