// SPDX-License-Identifier: Apache-2.0
/* Residual add, then RMSNorm of the sum, op by op: residual_out = x + residual; y = rmsnorm(residual_out). The statistics see
 * the sum rounded to x's dtype or the f32 sum, as the formula says. Error of the mean square: at most (chain + 2) * 2^-24,
 * relative, and that of the sum. */
#include "kernels/shared/composed_norm.h"

static void build(struct program *p) { scale_by_squares(p, add_residual(p), p->call->cols, (float)p->call->cols); }

/* Loads: add 2, square, mean, scale, gamma; 16 bits: two casts up, the sum's down, y's down. Stores likewise. */
NB_KERNEL(add_rmsnorm_composed, .summary = "residual add and RMSNorm op by op with temporaries",
          .op = NB_OP_ADD_RMSNORM, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .formulas = COMPOSED_ADD_FORMULAS,
          .loads = 6 * F32_TENSOR + ADD_CAST_LOADS, .stores = 4 * F32_TENSOR + ADD_CAST_STORES, .flops = 5,
          .run = composed_run, .n_phases = composed_phases, .n_units = composed_units,
          .scratch_bytes = composed_scratch, .chain = composed_chain, .range = square_range);
