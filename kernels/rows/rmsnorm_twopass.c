// SPDX-License-Identifier: Apache-2.0
/* RMSNorm: a sum of squares over 8 accumulators, then the scaling, both sweeps over a row that is still in the cache. The
 * plain good implementation, and the reference that the others are compared with.
 * Relative error of the mean square: at most (ceil(n / (8 lanes)) + log2(8 lanes) + 1) u, u = 2^-24, all terms being
 * positive; y has half of that, and 1 to 3 roundings of its own. */
#include "kernels/rows/row.h"

static int rmsnorm_twopass_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return norm_rows(call, begin, end, stats_of_squares, false);
}

NB_KERNEL(rmsnorm_twopass, .summary = "RMSNorm, sum of squares then scale, 8 accumulators", .op = NB_OP_RMSNORM,
          .loads = 2, .stores = 1, .flops = 4, .run = rmsnorm_twopass_run, .chain = row_chain, .range = square_range,
          ROW_KERNEL);
