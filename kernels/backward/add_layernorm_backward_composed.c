// SPDX-License-Identifier: Apache-2.0
/* Backward of a residual add and LayerNorm, unfused (composed_backward.h): x is the stored sum, dx = dresidual_out + the gradient of
 * layernorm_backward_composed. */
#define GRADIENT_CENTRE true
#define GRADIENT_RESIDUAL true
#include "kernels/backward/composed_backward.h"

NB_KERNEL(add_layernorm_backward_composed, .summary = "unfused residual add and LayerNorm backward with temporaries",
          .op = NB_OP_ADD_LAYERNORM, .pass = NB_BACKWARD, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .flops = 14,
          COMPOSED_GRADIENT);
