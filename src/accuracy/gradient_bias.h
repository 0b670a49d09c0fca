// SPDX-License-Identifier: Apache-2.0
/* How one-sided the error of a correct dx is on independent random data: not at all, but for the rounding of 1 + gamma. The two sums of a
 * row cannot tilt it, whatever they are off: what they take away is proportional to 1 and to xhat, both of which dx is orthogonal to. */
#ifndef NB_GRADIENT_BIAS_H
#define NB_GRADIENT_BIAS_H

#include "src/accuracy/bias.h"
#include "src/accuracy/gradient.h"

void nb_bias_predict_gradient(const struct nb_case *c, const struct nb_gradient *g, struct nb_bias *bias);

#endif
