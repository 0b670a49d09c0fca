// SPDX-License-Identifier: Apache-2.0
/* Backward of a residual add and LayerNorm op by op (composed_backward.h): x is the stored sum, dx = dresidual_out + the gradient of
 * layernorm_backward_composed. */
#include "kernels/backward/composed_backward.h"

static void build(struct program *p) { gradient_recipe(p, true, p->call->cols); }

NB_KERNEL(add_layernorm_backward_composed, .summary = "residual add and LayerNorm backward op by op with temporaries",
          .op = NB_OP_ADD_LAYERNORM, .pass = NB_BACKWARD, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM,
          .formulas = COMPOSED_ADD_GRADIENT_FORMULAS,
          .loads = (GRADIENT_LOADS + CENTRED_LOADS) * F32_TENSOR + GRADIENT_CAST_LOADS + PAST_LOADS,
          .stores = (GRADIENT_STORES + CENTRED_STORES) * F32_TENSOR + GRADIENT_CAST_STORES + PAST_STORES, .flops = 14,
          .run = composed_run, .n_phases = composed_phases, .n_units = composed_units,
          .scratch_bytes = composed_gradient_scratch, .chain = composed_chain, .column_chain = composed_column_chain);
