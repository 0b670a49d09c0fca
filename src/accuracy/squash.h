// SPDX-License-Identifier: Apache-2.0
/* tanh and its slope, as DyT needs them: to a few 2^-53 of themselves each, the slope also where tanh has long rounded to 1. */
#ifndef NB_SQUASH_H
#define NB_SQUASH_H

#include <stdint.h>

#include "src/plan/inputs.h"

struct nb_squash {
    double tanh, slope; /* of alpha * x: tanh, and 1 - tanh^2 */
};
struct nb_squash nb_squash(double alpha, double x);

/* Those of one row of x, kept for whoever asks for the same row again: not for two threads at once. */
struct nb_squashed_row {
    int64_t row; /* -1: none yet */
    struct nb_squash of[];
};
struct nb_squashed_row *nb_squashed_row_new(int64_t cols); /* for free() */
const struct nb_squash *nb_squashed_row(struct nb_squashed_row *kept, double alpha, const struct nb_inputs *in,
                                        int64_t row);

#endif
