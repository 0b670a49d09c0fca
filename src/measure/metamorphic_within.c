// SPDX-License-Identifier: Apache-2.0
/* Both results are within the bound of their own rows, whose exact results are the same: they differ by the sum at most. */
#include "src/measure/metamorphic_within.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"

static bool is_batchnorm(const struct nb_trials *t) { return t->fixture->c.op == NB_OP_BATCHNORM; }

static bool centres(const struct nb_case *c) {
    return c->op == NB_OP_LAYERNORM || c->op == NB_OP_ADD_LAYERNORM || c->op == NB_OP_BATCHNORM;
}

/* A row of y beside a row of the first call: the tolerances of both hold. place[i]: where column i went; null: nowhere. */
static void compare_within(struct nb_trials *t, enum nb_relation relation, const void *now, const void *before,
                           int64_t row, const int64_t *place, const double *exact, const double *tolerance) {
    const enum nb_dtype dtype = t->fixture->in.dtype;
    for (int64_t i = 0; i < t->fixture->in.cols; i++) {
        const double v = nb_get(now, place ? place[i] : i, dtype), w = nb_get(before, i, dtype);
        if (!isfinite(tolerance[i]) || !(tolerance[i] > 0)) continue;
        const double difference = fabs(v - w);
        double ratio = isfinite(difference) ? difference / tolerance[i] : INFINITY;
        if (isnan(v) && isnan(w)) ratio = 0; /* the check has said so */
        t->n_compared++;
        if (relation == NB_REL_PERMUTE && isfinite(difference))
            t->out->order_noise_ulp = fmax(t->out->order_noise_ulp, difference / nb_ulp(exact[i], dtype));
        if (!(ratio > t->out->relations[relation].figure)) continue;
        t->out->relations[relation].figure = ratio;
        t->out->relations[relation].row = row;
        t->out->relations[relation].col = i;
    }
}

/* A shuffle of [from, to). */
static void shuffle(int64_t *place, int64_t from, int64_t to, uint64_t seed) {
    for (int64_t i = to - 1; i > from; i--) {
        const int64_t j = from + (int64_t)(nb_random_next(&seed) % (uint64_t)(i - from + 1)), other = place[i];
        place[i] = place[j];
        place[j] = other;
    }
}

static void move_columns(void *row, int64_t cols, size_t item, const int64_t *place) {
    if (!row) return;
    unsigned char *copy = nb_alloc((unsigned long long)cols, item), *to = row;
    memcpy(copy, row, (size_t)cols * item);
    for (int64_t i = 0; i < cols; i++) memcpy(to + (size_t)place[i] * item, copy + (size_t)i * item, item);
    free(copy);
}

/* The first column stays, since a shifted variance is taken about it; what pRMSNorm looks at stays among itself. */
void nb_trials_permute(struct nb_trials *t) {
    struct nb_inputs *in = &t->fixture->in;
    const int64_t cols = in->cols, seen = t->oracle->n_stats < cols ? t->oracle->n_stats : cols;
    const size_t bytes = (size_t)cols * t->fixture->item;
    if (is_batchnorm(t) || t->fixture->c.op == NB_OP_DYT || cols < 3) {
        nb_trials_skip(t, NB_REL_PERMUTE, cols < 3 ? "fewer than 3 columns" : "nothing is summed along a row");
        return;
    }
    int64_t *place = nb_alloc((unsigned long long)cols, sizeof *place);
    for (int64_t i = 0; i < cols; i++) place[i] = i;
    shuffle(place, 1, seen, t->fixture->c.seed + 1);
    shuffle(place, seen, cols, t->fixture->c.seed + 2);
    nb_fixture_reset(t->fixture);
    for (int64_t r = 0; r < in->rows; r++) {
        move_columns((unsigned char *)in->x + (size_t)r * bytes, cols, t->fixture->item, place);
        if (in->residual)
            move_columns((unsigned char *)in->residual + (size_t)r * bytes, cols, t->fixture->item, place);
    }
    move_columns(in->gamma_f32, cols, sizeof(float), place);
    move_columns(in->beta_f32, cols, sizeof(float), place);
    move_columns(in->gamma_x, cols, t->fixture->item, place);
    move_columns(in->beta_x, cols, t->fixture->item, place);
    t->out->order_noise_ulp = 0;
    t->n_compared = 0;
    if (nb_trials_call(t, NB_REL_PERMUTE, in->rows, 0)) {
        for (int64_t r = 0; r < in->rows; r++) {
            nb_trials_exact(t, t->oracle, &t->bound, r % t->fixture->source_rows);
            for (int64_t i = 0; i < cols; i++) t->tolerance[i] *= 2;
            compare_within(t, NB_REL_PERMUTE, (unsigned char *)t->y + (size_t)r * bytes,
                           (unsigned char *)t->first + (size_t)r * bytes, r, place, t->exact, t->tolerance);
        }
        nb_trials_judge_ratio(t, NB_REL_PERMUTE, 1, "another order of the columns changes y beyond the bound");
    }
    if (t->n_compared == 0) t->out->order_noise_ulp = NAN;
    free(place);
}

/* ---- shift ---- */

/* Every x on a grid so coarse that the shift by a power of two beyond the largest is exact. 0: no such shift in the dtype. */
static double make_coarse(struct nb_fixture *fixture) {
    const struct nb_format *f = &nb_formats[fixture->in.dtype];
    const int64_t n = fixture->in.rows * fixture->in.cols;
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = fabs(nb_get(fixture->in.x, i, fixture->in.dtype));
        if (!isfinite(v)) return 0;
        largest = fmax(largest, v);
    }
    if (!(largest > 0)) return 0;
    const int top = ilogb(largest), grid = top - f->precision + 4;
    if (top + 2 > f->emax || grid < f->emin) return 0;
    for (int64_t i = 0; i < n; i++) {
        nb_set(fixture->in.x, i, fixture->in.dtype,
               ldexp(rint(ldexp(nb_get(fixture->in.x, i, fixture->in.dtype), -grid)), grid));
        if (fixture->in.residual) nb_set(fixture->in.residual, i, fixture->in.dtype, 0);
    }
    return ldexp(1, top + 1);
}

/* Tolerances of all rows of the fixture as it stands, added to sums. */
static bool add_tolerances(struct nb_trials *t, double *sums) {
    struct nb_oracle oracle;
    struct nb_bound bound;
    const int64_t cols = t->fixture->in.cols;
    if (nb_oracle_init(&oracle, &t->fixture->c, &t->fixture->in) != 0) return false;
    nb_bound_init(&bound, &t->fixture->c, &oracle, t->bound.chain);
    for (int64_t r = 0; r < t->fixture->in.rows; r++) {
        nb_trials_exact(t, &oracle, &bound, r);
        for (int64_t i = 0; i < cols; i++) sums[r * cols + i] += t->tolerance[i];
    }
    nb_bound_release(&bound);
    nb_oracle_release(&oracle);
    return true;
}

static void shift_rows(struct nb_trials *t, double by) {
    struct nb_inputs *in = &t->fixture->in;
    const int64_t cols = in->cols, n = in->rows * cols;
    const size_t bytes = (size_t)cols * t->fixture->item;
    double *sums = nb_alloc((unsigned long long)n, sizeof *sums);
    void *before = nb_alloc((unsigned long long)in->rows, bytes);
    t->n_compared = 0;
    bool whole = add_tolerances(t, sums) && nb_trials_call(t, NB_REL_SHIFT, in->rows, 0);
    if (whole) {
        memcpy(before, t->y, (size_t)in->rows * bytes);
        for (int64_t i = 0; i < n; i++) nb_set(in->x, i, in->dtype, nb_get(in->x, i, in->dtype) + by);
        whole = add_tolerances(t, sums) && nb_trials_call(t, NB_REL_SHIFT, in->rows, 0);
    }
    for (int64_t r = 0; whole && r < in->rows; r++)
        compare_within(t, NB_REL_SHIFT, (unsigned char *)t->y + (size_t)r * bytes,
                       (unsigned char *)before + (size_t)r * bytes, r, NULL, t->exact, sums + r * cols);
    if (whole) nb_trials_judge_ratio(t, NB_REL_SHIFT, 1, "a constant added to the row changes y beyond the bound");
    free(sums);
    free(before);
}

/* Two rows are enough for a relation that needs oracles of its own. */
void nb_trials_shift(struct nb_trials *t) {
    const int64_t rows = t->fixture->in.rows;
    if (!centres(&t->fixture->c) || (is_batchnorm(t) && t->fixture->c.mode == NB_INFERENCE)) {
        nb_trials_skip(t, NB_REL_SHIFT, "the op does not centre its rows");
        return;
    }
    nb_fixture_reset(t->fixture);
    if (!is_batchnorm(t) && rows > 2) t->fixture->in.rows = 2;
    const double by = make_coarse(t->fixture);
    if (by > 0)
        shift_rows(t, by);
    else
        nb_trials_skip(t, NB_REL_SHIFT, "no shift of these rows is exact in the dtype");
    t->fixture->in.rows = rows;
}
