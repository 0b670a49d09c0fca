// SPDX-License-Identifier: Apache-2.0
/* RMSNorm with its statistics in a [rows, 1] tensor: all rows are read for them before the first is scaled, so that a tensor
 * beyond the cache is read from memory twice. Relative error of the mean square: at most (chain + 1) u, u = 2^-24. */
#include "kernels/rows/stored_stats.h"

static int rmsnorm_keepdim_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    if (phase == 1) return norm_rows(call, begin, end, stored_stats, false);
    store_row_stats(call, begin, end, stats_of_squares);
    return 0;
}

NB_KERNEL(rmsnorm_keepdim, .summary = "RMSNorm, statistics as a [rows, 1] tensor, then broadcast", .op = NB_OP_RMSNORM,
          .stats = NB_STATS_KEEPDIM, .formulas = {NB_EVERY_FORMULA}, .loads = 2, .stores = 1, .flops = 4,
          .run = rmsnorm_keepdim_run, .n_phases = keepdim_phases, .scratch_bytes = keepdim_scratch, .chain = row_chain,
          .range = square_range);
