// SPDX-License-Identifier: Apache-2.0
/* tanh and its slope, as DyT needs them: to a few 2^-53 of themselves each, the slope also where tanh has long rounded to 1. */
#ifndef NB_SQUASH_H
#define NB_SQUASH_H

struct nb_squash {
    double tanh, slope; /* of alpha * x: tanh, and 1 - tanh^2 */
};
struct nb_squash nb_squash(double alpha, double x);

#endif
