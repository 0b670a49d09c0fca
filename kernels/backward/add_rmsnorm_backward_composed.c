// SPDX-License-Identifier: Apache-2.0
/* Backward of a residual add and RMSNorm op by op (composed_backward.h): x is the stored sum, dx = dresidual_out + the gradient of
 * rmsnorm_backward_composed. */
#include "kernels/backward/composed_backward.h"

static void build(struct program *p) { gradient_recipe(p, false, p->call->cols); }

NB_KERNEL(add_rmsnorm_backward_composed, .summary = "residual add and RMSNorm backward op by op with temporaries",
          .op = NB_OP_ADD_RMSNORM, .pass = NB_BACKWARD, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM,
          .formulas = COMPOSED_ADD_GRADIENT_FORMULAS,
          .loads = (GRADIENT_LOADS)*F32_TENSOR + GRADIENT_CAST_LOADS + PAST_LOADS,
          .stores = (GRADIENT_STORES)*F32_TENSOR + GRADIENT_CAST_STORES + PAST_STORES, .flops = 11, .run = composed_run,
          .n_phases = composed_phases, .n_units = composed_units, .scratch_bytes = composed_gradient_scratch,
          .chain = composed_chain, .column_chain = composed_column_chain);
