// SPDX-License-Identifier: Apache-2.0
/* What a generated value is a function of: the numbers in the brackets of its distribution, the dtype, the row and the column. */
#ifndef NB_DRAW_H
#define NB_DRAW_H

#include <stdint.h>

#include "src/core/dtype.h"
#include "src/core/random.h"

#define NB_MAX_NUMBERS 64 /* in the brackets of a distribution */

struct nb_draw {
    double numbers[NB_MAX_NUMBERS]; /* those left out have their fallbacks */
    int n_given;                    /* how many stood in the brackets */
    const struct nb_format *format;
    int64_t cols;
    struct nb_random random;
};

static inline uint64_t nb_draw_position(const struct nb_draw *d, int64_t row, int64_t col) {
    return (uint64_t)row * (uint64_t)d->cols + (uint64_t)col;
}

static inline double nb_draw_normal(const struct nb_draw *d, int64_t row, int64_t col) {
    return nb_random_normal(d->random, nb_draw_position(d, row, col));
}

/* A column for each row: neighbours differ, so that a kernel's lanes and tails all meet it. */
static inline int64_t nb_draw_marked_column(const struct nb_draw *d, int64_t row) { return row * 7919 % d->cols; }

#endif
