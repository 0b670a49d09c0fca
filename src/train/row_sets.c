// SPDX-License-Identifier: Apache-2.0
/* Rows by position and length. */
#include "src/train/row_sets.h"

#include <string.h>

int64_t nb_row_sets_count(const struct nb_row_sets *s) { return s->by_position ? s->sequence : 1; }

int64_t nb_row_sets_rows(const struct nb_row_sets *s, int64_t i, int64_t *which) {
    int64_t n = 0;
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t t = 0; t < s->sequence; t++)
            if ((!s->by_position || t == i) && (!s->masked || t < s->lengths[b])) which[n++] = b * s->sequence + t;
    return n;
}

void nb_rows_gather(float *packed, const float *x, const int64_t *which, int64_t n, int64_t cols) {
    for (int64_t r = 0; r < n; r++) memcpy(packed + r * cols, x + which[r] * cols, (size_t)cols * sizeof *x);
}

void nb_rows_scatter(float *y, const float *packed, const int64_t *which, int64_t n, int64_t cols) {
    for (int64_t r = 0; r < n; r++) memcpy(y + which[r] * cols, packed + r * cols, (size_t)cols * sizeof *y);
}
