// SPDX-License-Identifier: Apache-2.0
/* RMSNorm with its scale materialised to the size of x: a tensor more to write and to read than the arithmetic needs.
 * Relative error of the mean square: at most (chain + 1) u, u = 2^-24. */
#include "kernels/rows/stored_stats.h"

static int rmsnorm_expanded_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return expanded_run(call, phase, begin, end, stats_of_squares, false);
}

static size_t rmsnorm_expanded_scratch_bytes(const struct nb_call *call) { return expanded_scratch(call, 1); }

/* The tensor in scratch is f32: twice the size of x with 16 bits. */
NB_KERNEL(rmsnorm_expanded, .summary = "RMSNorm, the scale materialised to the size of x", .op = NB_OP_RMSNORM,
          .stats = NB_STATS_EXPANDED, .formulas = {NB_EVERY_FORMULA}, .loads = 2 + 4.0f / sizeof(elem),
          .stores = 1 + 4.0f / sizeof(elem), .flops = 4, .run = rmsnorm_expanded_run, .n_phases = expanded_phases,
          .n_units = expanded_units, .scratch_bytes = rmsnorm_expanded_scratch_bytes, .chain = row_chain,
          .range = square_range);
