// SPDX-License-Identifier: Apache-2.0
/* Rows of integers whose squares have a sum that is exact in f32 in any order, so that v is known. */
#ifndef NB_PROBE_INTEGERS_H
#define NB_PROBE_INTEGERS_H

#include "src/lab/probe/probe_box.h"

/* cols 4^bits <= 2^24. */
struct nb_integers {
    int64_t cols;
    int bits; /* elements below 2^bits */
};
extern const struct nb_integers nb_integers[NB_N_DTYPES];

/* All rows of the box: odd integers of up to 2 .. bits bits, a row each; where the mean is taken off in pairs of +-. */
void nb_integers_fill(struct nb_box *b);
/* One row with the element x in column 0 and the sum of squares `sum` (centred: an even one, and -x beside it). -1: no room. */
int nb_integers_set(struct nb_box *b, int64_t row, int64_t x, int64_t sum);
/* v of a row: exact. */
float nb_integers_variance(const struct nb_box *b, int64_t row);

#endif
