// SPDX-License-Identifier: Apache-2.0
/* How far a correct kernel of the declared formula may be off, element by element: an a-priori rounding-error bound from the
 * formula, the kernel's chain, the dtypes and the row's own statistics. src/README.md derives it. Nothing in here is fitted. */
#ifndef NB_BOUND_H
#define NB_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "src/oracle.h"

struct nb_bound {
    const struct nb_case *c;
    const struct nb_oracle *o;
    int64_t chain;
};

/* A loss that the declared formula predicts for this row: its value need not be right there. */
enum nb_loss {
    NB_LOSS_NONE,
    NB_LOSS_SQUARE_OVERFLOW,  /* x^2 or their sum leaves the range of the statistics' dtype */
    NB_LOSS_SQUARE_UNDERFLOW, /* x^2 vanishes where eps does not cover it */
    NB_LOSS_EPS_ZERO,         /* eps is 0 in the statistics' dtype and the row needs it */
    NB_LOSS_CANCELLATION,     /* E[x^2] - mean^2 may have no correct digit, or be negative */
    NB_LOSS_OUTPUT_OVERFLOW,  /* the exact result lies beyond the dtype's range */
    NB_LOSS_INPUT_NOT_FINITE, /* Inf or NaN in the row */
    NB_N_LOSSES
};
const char *nb_loss_name(enum nb_loss loss);

void nb_bound_init(struct nb_bound *b, const struct nb_case *c, const struct nb_oracle *o, int64_t chain);
/* Sets tolerance[i] = |allowed error| of y_i for each column of a row (the last rounding to the dtype included).
 * Returns the loss predicted for the row. */
enum nb_loss nb_bound_row(const struct nb_bound *b, int64_t row, const double *y, double *tolerance);

/* For data drawn independently: the expected relative bias of the row's scale from round-to-nearest stagnation and its standard
 * deviation (reference: -0.0404 p0 (n u / L)^1.5 for a sum of squares), so that bias beyond it means truncation. */
void nb_bound_bias(const struct nb_bound *b, double *expected, double *sigma);

#endif
