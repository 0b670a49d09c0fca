// SPDX-License-Identifier: Apache-2.0
/* The smallest error of the scale, or shift of all outputs, that a criterion sees. */
#ifndef NB_TOLERANCE_DETECT_H
#define NB_TOLERANCE_DETECT_H

#include "src/lab/tolerance/tolerance_test.h"

enum nb_fault_kind { NB_FAULT_GAIN, NB_FAULT_OFFSET };

/* Of one test: the exact outputs times 1 + g, or plus g rms(y), rounded to the store; g is found by bisection to 5 %.
 * Infinity: 1 is not seen; 0: the exact outputs,
 * rounded, fail already. */
double nb_least_seen(const struct nb_criterion *c, enum nb_number store, const struct nb_tolerance_test *t,
                     enum nb_fault_kind kind);

#endif
