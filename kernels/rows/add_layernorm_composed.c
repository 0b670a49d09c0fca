// SPDX-License-Identifier: Apache-2.0
/* Residual add, then LayerNorm of the sum, unfused: residual_out = x + residual; y = layernorm(residual_out). The statistics
 * see the sum rounded to x's dtype or the f32 sum, as the formula says. Error of the variance: at most (chain + 4) * 2^-24,
 * relative, and that of the mean squared and of the sum. */
#include "kernels/shared/composed_norm.h"

static void build(struct program *p) { standardise(p, add_residual(p)); }

/* Loads: add 2, mean, centre, square, mean, scale, gamma, beta; 16 bits: two casts up, the sum's down, y's down. */
NB_KERNEL(add_layernorm_composed, .summary = "unfused residual add and LayerNorm with temporaries",
          .op = NB_OP_ADD_LAYERNORM, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .variance = NB_VAR_TWOPASS,
          .formulas = {NB_EVERY_FORMULA, .round_sums = NB_ALL(2)}, .loads = 9 * F32_TENSOR + ADD_CAST_LOADS,
          .stores = 6 * F32_TENSOR + ADD_CAST_STORES, .flops = 8, .chain = composed_chain, .range = mean_range,
          COMPOSED_KERNEL, .scratch_bytes = composed_scratch);
