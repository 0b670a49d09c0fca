// SPDX-License-Identifier: Apache-2.0
/* RMSNorm, fused: sum of squares, then scale, both sweeps over a row that is still in the cache.
 * Relative error of the mean square: at most (chain + 2) * 2^-24, all terms being positive. */
#include "reduce.h"
#include "row.h"

static __attribute__((noinline)) struct row_stats stats(const struct nb_call *call, const elem *x) {
    float mean_square = sum_squares(x, call->cols) / (float)call->cols;
    return (struct row_stats){.scale = row_scale(mean_square, call)};
}

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    return norm_rows(call, begin, end, stats, false);
}

NB_KERNEL(rmsnorm_twopass, .summary = "RMSNorm, sum of squares then scale, 8 accumulators", .op = NB_OP_RMSNORM,
          .formulas = ROW_FORMULAS, .loads = 2, .stores = 1, .flops = 4, .run = run, .row_local = always_row_local,
          .chain = row_chain);
