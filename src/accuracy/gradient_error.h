// SPDX-License-Identifier: Apache-2.0
/* How far what the elements of a row share may be off in a backward call: the means of g and of g * xhat, and xhat relative to itself.
 * The part of the bound that hangs on the kernel's chain; src/README.md derives it. */
#ifndef NB_GRADIENT_ERROR_H
#define NB_GRADIENT_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/gradient.h"
#include "src/accuracy/statistics_error.h"

/* The arithmetic of a kernel for one case: relative errors as (1 + u)^k - 1, found once. */
struct nb_gradient_arithmetic {
    const struct nb_case *c;
    const struct nb_gradient *g;
    struct nb_precision op; /* of every operation */
    double sum_overflow;
    bool low_precision; /* every intermediate rounded to x's dtype (NB_STATS_X) */
    double flushed;     /* largest number that an operand may lose: 0, or 2^-126 (NB_FLAG_FLUSHES) */
    double growth;      /* (1 + u)^chain - 1 of the additions */
    double of_g, of_xhat,
        of_sum; /* relative errors: dy * w; (x - mean) * rstd; a sum and its division, of the sum of magnitudes */
    double of_mean_g, of_mean_gx; /* all of them together, of mean |g| and mean |g xhat| */
    double n, divisor;            /* terms of a sum, and what it is divided by */
};

/* chain: the longest of roundings in the reduction that is meant. */
void nb_gradient_arithmetic_init(struct nb_gradient_arithmetic *a, const struct nb_case *c, const struct nb_gradient *g,
                                 int64_t chain, bool flushes);

/* What xhat may be off beside of_xhat * |xhat|, in an element and as the factor of a sum; shift = |mean| * rstd. */
struct nb_xhat_error {
    double element, in_sums;
};
struct nb_xhat_error nb_xhat_error(const struct nb_gradient_arithmetic *a, double shift, double rstd);

struct nb_row_gradient_error {
    struct nb_xhat_error xhat;
    double mean_g, mean_gx; /* absolute */
    double of_rstd;         /* relative: rstd stored as a subnormal of a narrow dtype */
    enum nb_loss loss;
};
/* coupled: does dx hang on the sums? */
struct nb_row_gradient_error nb_row_gradient_error(const struct nb_gradient_arithmetic *a, int64_t stat, bool coupled);

/* (1 + g) (1 + u)^k - 1 */
double nb_gradient_compound(double g, double u, int k);

#endif
