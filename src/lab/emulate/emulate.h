// SPDX-License-Identifier: Apache-2.0
/* Executes a design step by step: every operation in double with the remainder known, then rounded once to the step's format. */
#ifndef NB_EMULATE_H
#define NB_EMULATE_H

#include <stdint.h>

#include "src/lab/emulate/design.h"

struct nb_emulated {
    double mean, var, rstd; /* as the design computed them, in its formats */
};

/* One row of cols values (each representable in d->store), gamma and beta (null: none; representable in d->weight) -> y, in
 * d->store. seed: of stochastic rounding, one per row. */
struct nb_emulated nb_emulate_row(const struct nb_design *d, int64_t cols, const double *x, const double *gamma,
                                  const double *beta, double *y, uint64_t seed);
/* The sum of squares alone, S in d->acc, of the first n values: what the laws of accumulation are about. */
double nb_emulate_sum_of_squares(const struct nb_design *d, int64_t n, const double *x, uint64_t seed);

#endif
