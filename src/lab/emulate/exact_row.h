// SPDX-License-Identifier: Apache-2.0
/* The exact result of one row of numbers of any format, to about 100 bits: each element is y + y_low, double-double from the
 * statistics to the last addition, off by less than 2^-95 of the largest term in it (x * scale * gamma, mean * scale * gamma,
 * beta). Enough to judge f64. For x of magnitude 0 or 2^-300 to 2^300; rows with Inf or NaN follow IEEE evaluation. */
#ifndef NB_EXACT_ROW_H
#define NB_EXACT_ROW_H

#include <stdint.h>

#include "src/accuracy/truth.h"
#include "src/core/case.h"

/* op, eps, its place, weight_offset and k as in c, whose shape has the columns; gamma, beta: null for 1 and 0. t, y_low: may be
 * null. */
void nb_exact_row(const struct nb_case *c, const double *x, const double *gamma, const double *beta,
                  struct nb_row_truth *t, double *y, double *y_low);

#endif
