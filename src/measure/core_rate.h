// SPDX-License-Identifier: Apache-2.0
/* What the core at hand can do when memory is no hindrance, measured by small loops of our own that stay in the first cache and wait
 * for nothing: multiply-adds, conversions between 16 bits and f32, and a chain of dependent additions, which is its clock.
 *
 * They give a bound for every kernel, and so none is compared with itself: a call of E elements on T threads takes at least
 *     E / T * max(flops / 2 * t_fma, loads * t_widen + stores * t_narrow)
 * with the fewest flops that any built-in kernel of the op declares, two to a multiply-add, the tensors that the op must read and
 * write, and of each loop the fastest way that this CPU has at any width. Loads and stores themselves are the copy's. */
#ifndef NB_CORE_RATE_H
#define NB_CORE_RATE_H

#include "src/core/case.h"

struct nb_core_rates {
    double clock_ghz;              /* dependent additions per ns */
    double fma_ns;                 /* of one f32 element; NaN: no loop for this instruction set */
    double widen_ns[NB_N_DTYPES];  /* load and conversion of an element to f32; 0 for f32 */
    double narrow_ns[NB_N_DTYPES]; /* conversion from f32, rounding to nearest even, and store */
};

/* About a millisecond. */
void nb_core_rates_measure(struct nb_core_rates *rates);
/* Of two measurements the faster in each figure: a bound may be too low, never too high. */
void nb_core_rates_best(struct nb_core_rates *rates, const struct nb_core_rates *other);

/* Time that the core needs for the case at least; NaN: not known. */
double nb_core_bound_ns(const struct nb_case *c, const struct nb_core_rates *rates);

/* Where the case's tensors lie while it is timed: "L1", "L2", "L3" or "DRAM", by their bytes for each thread and the caches of the CPU,
 * of which 9/10, 8/10 and, since it is shared with others, half count as the case's own. */
const char *nb_case_level(const struct nb_case *c);

#endif
