// SPDX-License-Identifier: Apache-2.0
/* How far a correct backward kernel may be off the exact gradient, element by element: an a-priori bound from the formula, the
 * kernel's chains and the row's own sums. src/README.md derives it. Nothing in here is fitted. */
#ifndef NB_GRADIENT_BOUND_H
#define NB_GRADIENT_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/bound.h"
#include "src/accuracy/gradient.h"

struct nb_gradient_bound {
    const struct nb_case *c;
    const struct nb_gradient *g;
    int64_t chain, column_chain;
    bool flushes;       /* NB_FLAG_FLUSHES */
    bool low_precision; /* every intermediate rounded to x's dtype (NB_STATS_X) */
};

void nb_gradient_bound_init(struct nb_gradient_bound *b, const struct nb_case *c, const struct nb_gradient *g,
                            int64_t chain, int64_t column_chain, bool flushes);
/* Sets tolerance[i] = |allowed error| of dx_i for each column of a row, the last rounding to the dtype included, from the exact dx of
 * nb_gradient_row(). Infinity: a loss is predicted for the element and any value is right. Returns the first loss. */
enum nb_loss nb_gradient_bound_row(const struct nb_gradient_bound *b, int64_t row, const double *dx, double *tolerance);
/* Of parameter gradient i (f32 outputs). */
double nb_gradient_bound_dgamma(const struct nb_gradient_bound *b, int64_t i);
double nb_gradient_bound_dbeta(const struct nb_gradient_bound *b, int64_t i);

#endif
