// SPDX-License-Identifier: Apache-2.0
/* Sums and running moments of a row in a design's order and formats. */
#ifndef NB_EMULATE_SUM_H
#define NB_EMULATE_SUM_H

#include <stdint.h>

#include "src/core/rounded_ops.h"
#include "src/lab/emulate/design.h"

/* Sum of x_0 .. x_(n-1), or of their squares, in d->acc; n >= 1. */
double nb_emulate_sum(const struct nb_design *d, struct nb_rounder *r, const double *x, int64_t n);
double nb_emulate_sum_squares(const struct nb_design *d, struct nb_rounder *r, const double *x, int64_t n);

/* Welford's updating mean and sum of squared distances, in d->acc; lanes, halves and blocks are merged by Chan's formula. */
struct nb_running {
    double n, mean, squares;
    double mean_rest, squares_rest; /* of NB_ORDER_KAHAN: what the last additions lost */
};
struct nb_running nb_emulate_welford(const struct nb_design *d, struct nb_rounder *r, const double *x, int64_t n);

#endif
