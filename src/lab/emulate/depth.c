// SPDX-License-Identifier: Apache-2.0
/* Two streams side by side, one through the design, one through the exact norm; row by row, so that memory holds one row. */
#include "src/lab/emulate/depth.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/rounded_ops.h"
#include "src/lab/emulate/design.h"
#include "src/lab/emulate/emulate.h"

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
