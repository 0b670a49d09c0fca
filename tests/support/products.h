// SPDX-License-Identifier: Apache-2.0
/* What roundings in f32 may change in a result of many operations, measured: the result is computed several times with matrix products
 * whose sums are taken in a random order and whose roundings go up or down at random, so that no library's order is the right one. */
#ifndef NB_TEST_SUPPORT_PRODUCTS_H
#define NB_TEST_SUPPORT_PRODUCTS_H

#include <stdint.h>

/* How often a result is drawn. */
enum { NB_TEST_DRAWS = 16 };

/* A result may differ from the exact one, or from another library's, by so many of the deviations below. Of ten thousand normal numbers
 * none is likely beyond 4.4 deviations, and one in a thousand deviations estimated from 16 draws is below 0.55 of the true one. */
#define NB_TEST_DEVIATIONS 8

/* The products of this process: drawn, otherwise for each seed; 0: the library's again.
 *
 * A drawn sum is that of Monte Carlo arithmetic: each product and each partial sum is rounded to one of the two nearest numbers of f32, by
 * chances that make the error 0 on average; its root mean square is 0.41 ulp where that of rounding to nearest is 0.29. Each factor is
 * off by up to 4 units of 2^-24 besides: the few roundings of the element-wise step or the normalization that it came from. */
void nb_test_products_draw(uint64_t seed);

/* The standard deviation of each of the n numbers that `result` writes, over the draws. Leaves the library's products in place. */
void nb_test_products_deviations(void (*result)(void *context, double *out), void *context, int64_t n,
                                 double *deviations);
/* Of a single number. */
double nb_test_products_noise(double (*value)(void *context), void *context);

#endif
