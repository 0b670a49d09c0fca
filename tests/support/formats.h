// SPDX-License-Identifier: Apache-2.0
/* Operations rounded to a number format by MPFR, as the reference for dtype.c. */
#ifndef NB_TEST_SUPPORT_FORMATS_H
#define NB_TEST_SUPPORT_FORMATS_H

#include "src/core/dtype.h"

enum exact_op { EXACT_SET, EXACT_ADD, EXACT_MUL, EXACT_DIV, EXACT_SQRT, EXACT_FMA, N_EXACT_OPS };

/* a, a + b, a * b, a / b, sqrt(a), a * b + c, rounded once: to nearest or to zero. */
double rounded_by_mpfr(enum exact_op op, double a, double b, double c, enum nb_number number,
                       enum nb_rounding rounding);
/* Equal, NaN to NaN, signs of zeros too. */
int same_number(double a, double b);

#endif
