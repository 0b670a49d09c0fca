// SPDX-License-Identifier: Apache-2.0
/* Residual add, then RMSNorm of the sum, unfused: residual_out = x + residual; y = rmsnorm(residual_out). The statistics see
 * the sum rounded to x's dtype or the f32 sum, as the formula says. Error of the mean square: at most (chain + 2) * 2^-24,
 * relative, and that of the sum. */
#include "kernels/shared/composed_norm.h"

static void build(struct program *p) { scale_by_squares(p, add_residual(p), p->call->cols, (float)p->call->cols); }

/* Loads: add 2, square, mean, scale, gamma; 16 bits: two casts up, the sum's down, y's down. Stores likewise. */
NB_KERNEL(add_rmsnorm_composed, .summary = "unfused residual add and RMSNorm with temporaries", .op = NB_OP_ADD_RMSNORM,
          .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .formulas = {NB_EVERY_FORMULA, .round_sums = NB_ALL(2)},
          .loads = 6 * F32_TENSOR + ADD_CAST_LOADS, .stores = 4 * F32_TENSOR + ADD_CAST_STORES, .flops = 5,
          .chain = composed_chain, .range = square_range, COMPOSED_KERNEL, .scratch_bytes = composed_scratch);
