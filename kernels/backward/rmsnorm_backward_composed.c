// SPDX-License-Identifier: Apache-2.0
/* RMSNorm backward, unfused (composed_backward.h): dx = rstd * (g - xhat * mean(g * xhat)), dgamma = sum of dy * xhat. In f32 12 tensor
 * reads and 7 writes where a fused kernel needs two and one. Error of the mean: at most (chain + 2) * 2^-24 of the mean of |g * xhat|. */
#include "kernels/backward/composed_backward.h"

NB_KERNEL(rmsnorm_backward_composed, .summary = "unfused RMSNorm backward with temporaries, as an eager framework",
          .op = NB_OP_RMSNORM, .pass = NB_BACKWARD, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .flops = 10,
          COMPOSED_GRADIENT);
