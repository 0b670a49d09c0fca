// SPDX-License-Identifier: Apache-2.0
/* LayerNorm, two-pass, with mean and scale materialised to the size of x: two tensors more to write and to read than the
 * arithmetic needs. Errors as of layernorm_twopass. */
#include "kernels/rows/stored_stats.h"

static int layernorm_expanded_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return expanded_run(call, phase, begin, end, stats_about_mean, true);
}

static size_t layernorm_expanded_scratch_bytes(const struct nb_call *call) { return expanded_scratch(call, 2); }

/* The tensors in scratch are f32: twice the size of x with 16 bits. */
NB_KERNEL(layernorm_expanded, .summary = "LayerNorm, mean and scale materialised to the size of x",
          .op = NB_OP_LAYERNORM, .stats = NB_STATS_EXPANDED, .variance = NB_VAR_TWOPASS, .formulas = {NB_EVERY_FORMULA},
          .loads = 3 + 2 * 4.0f / sizeof(elem), .stores = 1 + 2 * 4.0f / sizeof(elem), .flops = 8,
          .run = layernorm_expanded_run, .n_phases = expanded_phases, .n_units = expanded_units,
          .scratch_bytes = layernorm_expanded_scratch_bytes, .chain = row_chain, .range = mean_range);
