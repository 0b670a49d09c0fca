// SPDX-License-Identifier: Apache-2.0
/* LayerNorm backward, unfused (composed_backward.h): dx = rstd * (g - mean(g) - xhat * mean(g * xhat)), dgamma and dbeta the sums of dy *
 * xhat and dy. In f32 16 tensor reads and 9 writes where a fused kernel needs two and one. Errors of the means: at most (chain + 2) *
 * 2^-24 of the mean magnitudes. */
#define GRADIENT_CENTRE true
#include "kernels/backward/composed_backward.h"

NB_KERNEL(layernorm_backward_composed, .summary = "unfused LayerNorm backward with temporaries, as an eager framework",
          .op = NB_OP_LAYERNORM, .pass = NB_BACKWARD, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .flops = 13,
          COMPOSED_GRADIENT);
