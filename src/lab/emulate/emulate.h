// SPDX-License-Identifier: Apache-2.0
/* Executes a design step by step: every operation in double with the remainder known, then rounded once to the step's format. */
#pragma once

#include <stdint.h>

#include "src/accuracy/oracle.h"
#include "src/core/case.h"
#include "src/core/dtype.h"
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

/* ---- The exact result of one row of numbers of any format, to about 100 bits: each element is y + y_low, double-double from the
 * statistics to the last addition, off by less than 2^-95 of the largest term in it (x * scale * gamma, mean * scale * gamma,
 * beta). Enough to judge f64. For x of magnitude 0 or 2^-300 to 2^300; rows with Inf or NaN follow IEEE evaluation. */

/* op, eps, its place, weight_offset and k as in c, whose shape has the columns; gamma, beta: null for 1 and 0. t, y_low: may be
 * null. */
void nb_exact_row(const struct nb_case *c, const double *x, const double *gamma, const double *beta,
                  struct nb_row_truth *t, double *y, double *y_low);
