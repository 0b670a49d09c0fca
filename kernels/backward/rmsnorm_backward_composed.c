// SPDX-License-Identifier: Apache-2.0
/* RMSNorm backward, unfused (composed_backward.h): dx = rstd * (g - xhat * mean(g * xhat)), dgamma = sum of dy * xhat. In f32 12 tensor
 * reads and 7 writes where a fused kernel needs two and one. Error of the mean: at most (chain + 2) * 2^-24 of the mean of |g * xhat|. */
#include "kernels/backward/composed_backward.h"

static void build(struct program *p) { gradient_recipe(p, false, p->call->cols); }

NB_KERNEL(rmsnorm_backward_composed, .summary = "unfused RMSNorm backward with temporaries, as an eager framework",
          .op = NB_OP_RMSNORM, .pass = NB_BACKWARD, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM,
          .formulas = {NB_EVERY_GRADIENT}, .loads = (GRADIENT_LOADS)*F32_TENSOR + GRADIENT_CAST_LOADS,
          .stores = (GRADIENT_STORES)*F32_TENSOR + GRADIENT_CAST_STORES, .flops = 10, COMPOSED_GRADIENT);
