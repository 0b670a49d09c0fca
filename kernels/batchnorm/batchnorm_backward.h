// SPDX-License-Identifier: Apache-2.0
/* What the backward kernels of BatchNorm share. With N values in a channel, w = gamma (or 1 + gamma, or 1), d = x - mean:
 *   dbeta = sum dy,  dgamma = rstd * sum dy * d
 *   training   dx = w * rstd * (dy - dbeta / N - rstd * d * dgamma / N)
 *   inference  dx = w * rstd * dy */
#ifndef NB_BATCHNORM_BACKWARD_H
#define NB_BATCHNORM_BACKWARD_H

#include "kernels/batchnorm/batchnorm.h"

/* eps, its place and the cast do not appear in a gradient. */
#define BATCHNORM_BACKWARD_FORMULAS                                                                                    \
    {                                                                                                                  \
        .roots = NB_BIT(NB_ROOT_MUL_RECIP), .weight_offsets = NB_ALL(2), .affines = NB_ALL(NB_N_AFFINES),              \
        .params = NB_ALL(NB_N_PARAMS)                                                                                  \
    }

/* Are the sums over the batch needed at all? */
static inline bool sums_gradients(const struct nb_call *call) {
    return is_training(call) || call->dgamma || call->dbeta;
}

#endif
