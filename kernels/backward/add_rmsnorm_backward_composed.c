// SPDX-License-Identifier: Apache-2.0
/* Backward of a residual add and RMSNorm, unfused (composed_backward.h): x is the stored sum, dx = dresidual_out + the gradient of
 * rmsnorm_backward_composed. */
#define GRADIENT_RESIDUAL true
#include "kernels/backward/composed_backward.h"

NB_KERNEL(add_rmsnorm_backward_composed, .summary = "unfused residual add and RMSNorm backward with temporaries",
          .op = NB_OP_ADD_RMSNORM, .pass = NB_BACKWARD, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .flops = 11,
          COMPOSED_GRADIENT);
