// SPDX-License-Identifier: Apache-2.0
/* How one-sided the error of a correct kernel is on independent random data. Rounding to nearest has no preferred side, so that
 * a mean error beyond what chance and the causes below explain means that something is truncated. All figures are relative errors. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/bound.h"
#include "src/accuracy/gradient.h"

/* Mean relative error of a sum of squares of independent numbers, whose |x| / rms has the density p0 at 0, since addends much smaller than
 * the sum are rounded down more often than up. nu = chain u, of a running sum, is at most 1. derivations.md derives it. */
static inline double nb_stagnation_bias(double nu, double p0) { return -0.0404 * p0 * nu * sqrt(nu); }
#define NB_NORMAL_DENSITY 0.7978845608 /* p0 of normal numbers: sqrt(2 / pi) */

/* ---- forward --------------------------------------------------------------------------------------------------------- */

struct nb_bias {
    bool
        predictable; /* false: low-precision statistics, sums that stagnate for good, lost rows, under 16 rows or channels */
    double expected;   /* of the mean over all elements: stagnating sums of squares, the rounding of 1 + gamma */
    double systematic; /* how far a correct kernel may be off that on either side, whatever the data */
    double scale_sd;   /* one standard deviation of the error that the elements of a row (BatchNorm: channel) share */
    int64_t n_scales;  /* rows or channels */
    double element_sd; /* of the error that each element has to itself */
    double n_elements; /* how many of those are independent: elements on a coarse grid repeat each other's */
    bool rounding_predictable;     /* may the test of the last rounding alone be made? (accuracy.h) */
    double rounding_allowance_ulp; /* what an error of the scale may add to its figure, through beta */
    double rounding_shared_ulp;    /* standard deviation of what all rows share in it */
};

void nb_bias_predict(const struct nb_bound *b, struct nb_bias *bias);

/* ---- gradients ------------------------------------------------------------------------------------------------------- */

/* How one-sided the error of a correct dx is on independent random data: not at all, but for the rounding of 1 + gamma. The two sums of a
 * row cannot tilt it, whatever they are off: what they take away is proportional to 1 and to xhat, both of which dx is orthogonal to. */

void nb_bias_predict_gradient(const struct nb_case *c, const struct nb_gradient *g, struct nb_bias *bias);
