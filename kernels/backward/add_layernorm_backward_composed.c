// SPDX-License-Identifier: Apache-2.0
/* Backward of a residual add and LayerNorm, unfused (composed_backward.h): x is the stored sum, dx = dresidual_out + the gradient of
 * layernorm_backward_composed. */
#include "kernels/backward/composed_backward.h"

static void build(struct program *p) { gradient_recipe(p, true, p->call->cols); }

NB_KERNEL(add_layernorm_backward_composed, .summary = "unfused residual add and LayerNorm backward with temporaries",
          .op = NB_OP_ADD_LAYERNORM, .pass = NB_BACKWARD, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM,
          .formulas = {NB_EVERY_GRADIENT, .round_sums = NB_ALL(2)},
          .loads = (GRADIENT_LOADS + CENTRED_LOADS) * F32_TENSOR + GRADIENT_CAST_LOADS + PAST_LOADS,
          .stores = (GRADIENT_STORES + CENTRED_STORES) * F32_TENSOR + GRADIENT_CAST_STORES + PAST_STORES, .flops = 14,
          COMPOSED_GRADIENT);
