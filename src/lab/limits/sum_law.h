// SPDX-License-Identifier: Apache-2.0
/* What a sum in limited precision loses, from its order and format alone: for equal addends exactly, for squares of independent
 * normal numbers as a mean and a standard deviation. src/lab/README.md derives them; nothing is fitted. */
#ifndef NB_SUM_LAW_H
#define NB_SUM_LAW_H

#include <stdint.h>

#include "src/lab/emulate/design.h"

struct nb_sum_law {
    int64_t chain;   /* longest chain of roundings, as nb_design_chain() has it */
    double bound;    /* gamma_chain = chain u / (1 - chain u), relative; Infinity from chain u >= 1 */
    double probable; /* sqrt(chain) u (Higham & Mary 2019): what errors without a side would keep to */
    double nu;       /* chain u of one running sum: below 1/4 a sum keeps growing as it should, above 1 it stops */
    double bias;     /* mean of (computed - exact) / exact of the sum of n squares of N(0,1) */
    double sd;       /* and its standard deviation */
};
void nb_sum_law(const struct nb_design *d, int64_t n, struct nb_sum_law *out);

/* The sum of n equal positive addends, of up to 48 bits, in the design's order, rounding to nearest: exactly what it comes to,
 * found without adding them one by one. Infinity (e4m3: NaN) where it overflows. */
double nb_sum_of_equals(const struct nb_design *d, double addend, int64_t n);

#endif
