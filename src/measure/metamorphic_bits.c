// SPDX-License-Identifier: Apache-2.0
/* Transforms the fixture's rows, calls, and compares with the first call's bits. */
#include "src/measure/metamorphic_bits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"

static bool is_batchnorm(const struct nb_trials *t) { return t->fixture->c.op == NB_OP_BATCHNORM; }

static bool same_row(const struct nb_trials *t, const void *a, int64_t row_a, const void *b, int64_t row_b,
                     int64_t *col) {
    const int64_t cols = t->fixture->in.cols;
    const size_t bytes = (size_t)cols * t->fixture->item;
    const unsigned char *p = (const unsigned char *)a + (size_t)row_a * bytes;
    const unsigned char *q = (const unsigned char *)b + (size_t)row_b * bytes;
    if (memcmp(p, q, bytes) == 0) return true;
    for (int64_t i = 0; i < cols; i++) {
        const double v = nb_get(p, i, t->fixture->in.dtype), w = nb_get(q, i, t->fixture->in.dtype);
        if (nb_bits(p, i, t->fixture->in.dtype) == nb_bits(q, i, t->fixture->in.dtype) || (isnan(v) && isnan(w)))
            continue;
        *col = i;
        return false;
    }
    return true;
}

/* Counts a row of the last call (t->y) against one of the first. */
static void compare_row(struct nb_trials *t, enum nb_relation relation, int64_t row, int64_t of_first) {
    int64_t col = 0;
    if (same_row(t, t->y, row, t->first, of_first, &col)) return;
    if (t->out->relations[relation].figure++ == 0) {
        t->out->relations[relation].row = of_first;
        t->out->relations[relation].col = col;
    }
}

void nb_trials_row_order(struct nb_trials *t) {
    struct nb_inputs *in = &t->fixture->in;
    const size_t bytes = (size_t)in->cols * t->fixture->item;
    if (is_batchnorm(t)) {
        nb_trials_skip(t, NB_REL_ROW_ORDER, "the statistics go over the rows");
        return;
    }
    nb_fixture_reset(t->fixture);
    void *tensors[] = {in->x, in->residual, in->dy, in->dresidual_out};
    for (int i = 0; i < 4; i++) {
        if (!tensors[i]) continue;
        unsigned char *copy = nb_alloc((unsigned long long)in->rows, bytes);
        memcpy(copy, tensors[i], (size_t)in->rows * bytes);
        for (int64_t r = 0; r < in->rows; r++)
            memcpy((unsigned char *)tensors[i] + (size_t)r * bytes, copy + (size_t)(in->rows - 1 - r) * bytes, bytes);
        free(copy);
    }
    if (!nb_trials_call(t, NB_REL_ROW_ORDER, in->rows, 0)) return;
    for (int64_t r = 0; r < in->rows; r++) compare_row(t, NB_REL_ROW_ORDER, r, in->rows - 1 - r);
    nb_trials_judge(t, NB_REL_ROW_ORDER, "a row's result hangs on its place");
}

/* The first and the last row, each alone. */
void nb_trials_batch(struct nb_trials *t) {
    struct nb_inputs *in = &t->fixture->in;
    const int64_t rows = in->rows, last = rows - 1;
    const size_t bytes = (size_t)in->cols * t->fixture->item;
    if (is_batchnorm(t)) {
        nb_trials_skip(t, NB_REL_BATCH, "the statistics go over the rows");
        return;
    }
    for (int64_t r = 0; r <= last; r += last > 0 ? last : 1) {
        nb_fixture_reset(t->fixture);
        void *tensors[] = {in->x, in->residual, in->dy, in->dresidual_out};
        for (int i = 0; i < 4; i++)
            if (tensors[i]) memmove(tensors[i], (unsigned char *)tensors[i] + (size_t)r * bytes, bytes);
        if (!nb_trials_call(t, NB_REL_BATCH, 1, 0)) return;
        compare_row(t, NB_REL_BATCH, 0, r);
    }
    nb_trials_judge(t, NB_REL_BATCH, "a row's result hangs on the size of the batch");
}

void nb_trials_ranges(struct nb_trials *t) {
    const int64_t units = nb_kernel_n_units(t->fixture->entry->kernel, &t->fixture->call, 0),
                  rows = t->fixture->in.rows;
    nb_fixture_reset(t->fixture);
    for (int64_t range = 1; range <= units && range <= 3; range += 2) {
        if (!nb_trials_call(t, NB_REL_RANGES, rows, range)) return;
        for (int64_t r = 0; r < rows; r++) compare_row(t, NB_REL_RANGES, r, r);
    }
    nb_trials_judge(t, NB_REL_RANGES, "the result hangs on how the call is cut into ranges");
}

void nb_trials_twice(struct nb_trials *t) {
    nb_fixture_reset(t->fixture);
    if (!nb_trials_call(t, NB_REL_TWICE, t->fixture->in.rows, 0)) return;
    for (int64_t r = 0; r < t->fixture->in.rows; r++) compare_row(t, NB_REL_TWICE, r, r);
    nb_trials_judge(t, NB_REL_TWICE, "the same call gives other bits");
}

/* ---- the other sign ---- */

void nb_trials_negate(struct nb_trials *t) {
    const enum nb_dtype dtype = t->fixture->in.dtype;
    const int64_t cols = t->fixture->in.cols, n = t->fixture->in.rows * cols;
    nb_fixture_reset(t->fixture);
    nb_fixture_negate(t->fixture);
    if (!nb_trials_call(t, NB_REL_NEGATE, t->fixture->in.rows, 0)) return;
    for (int64_t i = 0; i < n; i++) {
        const double v = nb_get(t->y, i, dtype), w = -nb_get(t->first, i, dtype);
        if (v == w || (isnan(v) && isnan(w))) continue; /* 0 has no sign to be held to: c - c is +0 on either side */
        if (t->out->relations[NB_REL_NEGATE].figure++ > 0) continue;
        t->out->relations[NB_REL_NEGATE].row = i / cols;
        t->out->relations[NB_REL_NEGATE].col = i % cols;
    }
    nb_trials_judge(t, NB_REL_NEGATE, "roundings prefer a side: the other sign of the input is not that of the result");
}
