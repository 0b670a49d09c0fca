// SPDX-License-Identifier: Apache-2.0
/* What the error of a kernel on given rows is measured by, beside the bound: noise (noise.h) and reference (reference.h) of each row.
 * They hang on the mathematics and the inputs alone, so that all kernels of an oracle share them. */
#ifndef NB_YARDSTICK_H
#define NB_YARDSTICK_H

#include <stdint.h>

#include "src/accuracy/accuracy.h"
#include "src/accuracy/oracle.h"

struct nb_yardstick {
    const struct nb_oracle *o;
    int64_t rows;
    double *noise; /* of each row; NaN: it has no finite exact result */
    double
        *reference; /* sum of the squared errors of the reference; NaN: it has no finite result, though there is one */
};
/* Borrows the oracle. */
void nb_yardstick_init(struct nb_yardstick *y, const struct nb_oracle *o);
void nb_yardstick_release(struct nb_yardstick *y);

/* Running sums of a kernel's errors against it. Zero-initialise but for the yardstick. */
struct nb_ratios {
    const struct nb_yardstick *yardstick;
    double noise_ratio, noise_ulp, scaled_max_u, max_ordinal;
    double squares, exact_squares;         /* of errors and of exact values, over all elements that are numbers */
    double own_squares, reference_squares; /* over rows on which both have numbers alone */
    int64_t n, n_strange, n_noise_rows, n_reference_rows, n_reference_failed;
};
/* One row of elements of the dtype beside the exact ones. */
void nb_ratios_row(struct nb_ratios *r, int64_t row, const void *computed, const double *exact);
/* Sets the ratios of an accuracy. */
void nb_ratios_finish(const struct nb_ratios *r, struct nb_accuracy *out);

#endif
