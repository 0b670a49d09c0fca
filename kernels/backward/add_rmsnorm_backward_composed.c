// SPDX-License-Identifier: Apache-2.0
/* Backward of a residual add and RMSNorm, unfused (composed_backward.h): x is the stored sum, dx = dresidual_out + the gradient of
 * rmsnorm_backward_composed. */
#include "kernels/backward/composed_backward.h"

static void build(struct program *p) { gradient_recipe(p, false, p->call->cols); }

NB_KERNEL(add_rmsnorm_backward_composed, .summary = "unfused residual add and RMSNorm backward with temporaries",
          .op = NB_OP_ADD_RMSNORM, .pass = NB_BACKWARD, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM,
          .formulas = {NB_EVERY_GRADIENT, .round_sums = NB_ALL(2)},
          .loads = (GRADIENT_LOADS)*F32_TENSOR + GRADIENT_CAST_LOADS + PAST_LOADS,
          .stores = (GRADIENT_STORES)*F32_TENSOR + GRADIENT_CAST_STORES + PAST_STORES, .flops = 11, COMPOSED_GRADIENT);
