// SPDX-License-Identifier: Apache-2.0
/* The exact result of a problem, by MPFR. */
#ifndef NB_TEST_SUPPORT_MPFR_H
#define NB_TEST_SUPPORT_MPFR_H

#include "tests/support/numerics.h"

/* The largest deviation of y as the oracle has it from the exact one, in f32 ulp of the exact value. */
double worst_deviation_from_mpfr(const struct problem *p);

#endif
