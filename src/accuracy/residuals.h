// SPDX-License-Identifier: Apache-2.0
/* What the mean and the mean square of y must be when gamma is 1 and beta 0, whatever the
 * exact y: 0 in ops that centre, and v / (v + eps). */
#pragma once

#include "src/accuracy/bound.h"

/* Residuals above this fail, as in LAPACK's tests. */
#define NB_RESIDUAL_THRESHOLD 30.0

struct nb_residual {
    double ratio; /* the largest, in units of the declared arithmetic */
    int64_t row;  /* where; -1: nowhere */
    int64_t n;    /* rows or channels judged */
};
struct nb_residuals {
    struct nb_residual squares, sum; /* sum: of ops that centre */
};

/* Rows of y, packed; row r has the statistics of row r mod the case's rows. */
void nb_residuals(const struct nb_bound *bound, const void *y, int64_t rows, struct nb_residuals *out);
