// SPDX-License-Identifier: Apache-2.0
/* How far a correct backward kernel may be off the exact gradient, element by element: an a-priori bound from the formula, the
 * kernel's chains and the row's own sums. derivations.md derives it. Nothing in here is fitted.
 *
 * Covered: g = dy * w; xhat = (x - mean) * rstd; the sums in any order within the chains; dx in any order of
 * rstd * (g - mean(g) - xhat * mean(gx)), factors folded into the constants or not, the last term also as a coefficient of x - mean.
 * Kernels that declare NB_FLAG_FOLDED may also write xhat = fma(x, rstd, -mean * rstd), dx = a g + b x + c, or sum g * x where the op
 * centres: their bound grows with |mean| * rstd. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/bound.h"
#include "src/accuracy/gradient.h"

/* ---- what a row shares ----------------------------------------------------------------------------------------------- */

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

/* ---- elements -------------------------------------------------------------------------------------------------------- */

struct nb_gradient_bound {
    const struct nb_case *c;
    const struct nb_gradient *g;
    int64_t chain;
    bool low_precision; /* every intermediate rounded to x's dtype (NB_STATS_X) */
    struct nb_gradient_arithmetic rows, columns;
    double on_g, on_mean_g, on_pull; /* relative errors of the roundings that the terms of dx pass */
    /* of all rows; shift = |mean| * rstd, distance = |x - mean| */
    double max_shift, min_rstd, max_rstd, max_abs_dy, max_abs_xhat, max_distance;
    double max_own_scale, max_own_shift;
    struct nb_statistics_error *own;     /* of kernels that find mean and rstd themselves: n_stats; else null */
    struct nb_gradient_shared *channels; /* NHWC: what the elements of a column share, for each; else null */
};

/* own: the oracle of a kernel that finds mean and rstd itself, whose statistics may then be off as a forward call's; else null. */
void nb_gradient_bound_init(struct nb_gradient_bound *b, const struct nb_case *c, const struct nb_gradient *g,
                            const struct nb_oracle *own, int64_t chain, int64_t column_chain, bool flushes);
void nb_gradient_bound_release(struct nb_gradient_bound *b);
/* Sets tolerance[i] = |allowed error| of dx_i for each column of a row, the last rounding to the dtype included, from the exact dx of
 * nb_gradient_row(). Infinity: a loss is predicted for the element and any value is right. Returns the first loss; of a row whose
 * tolerances are as large as what dx comes of, rstd * dy * w and the gradient past the norm, NB_LOSS_UNBOUNDED. */
enum nb_loss nb_gradient_bound_row(const struct nb_gradient_bound *b, int64_t row, const double *dx, double *tolerance);
enum nb_parameter { NB_DGAMMA, NB_DBETA, NB_DALPHA };
/* Of element i of a parameter's gradient (f32 outputs). DyT's dalpha is one number, whose sum runs along the rows (chain) and then over
 * them (column_chain). */
double nb_gradient_bound_parameter(const struct nb_gradient_bound *b, enum nb_parameter parameter, int64_t i);
