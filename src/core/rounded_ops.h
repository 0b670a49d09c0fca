// SPDX-License-Identifier: Apache-2.0
/* One arithmetic operation, rounded once: computed in double together with its exact remainder (two-sum of Knuth 1969, fma
 * residuals, ErrFma of Boldo & Muller 2005), then rounded to the format wanted. Operands are any doubles.
 * The remainder is exact save where it lies below the range of double (results of f64 under 2^-960): its sign is right even there,
 * which rounding to nearest and to zero need; stochastic rounding has the wrong chance there by up to the whole. */
#ifndef NB_ROUNDED_OPS_H
#define NB_ROUNDED_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/core/dtype.h"

struct nb_rounder {
    enum nb_rounding rounding;
    bool flush;      /* results that are subnormal in their format become 0 */
    uint64_t random; /* state, of stochastic rounding */
};

/* v, whose remainder is below (see nb_number_round), to the format. */
double nb_rounder_round(struct nb_rounder *r, double v, double below, enum nb_number to);
static inline double nb_convert(struct nb_rounder *r, double v, enum nb_number to) {
    return nb_rounder_round(r, v, 0, to);
}
double nb_rounded_add(struct nb_rounder *r, double a, double b, enum nb_number to);
static inline double nb_rounded_sub(struct nb_rounder *r, double a, double b, enum nb_number to) {
    return nb_rounded_add(r, a, -b, to);
}
double nb_rounded_mul(struct nb_rounder *r, double a, double b, enum nb_number to);
double nb_rounded_div(struct nb_rounder *r, double a, double b, enum nb_number to);
double nb_rounded_sqrt(struct nb_rounder *r, double a, enum nb_number to);
/* a * b + c */
double nb_rounded_fma(struct nb_rounder *r, double a, double b, double c, enum nb_number to);

#endif
