// SPDX-License-Identifier: Apache-2.0
/* RMSNorm on a GPU, a row in one launch. Relative error of the mean square: at most (chain + 1) u, u = 2^-24. */
#include "kernels/cuda/rows.h"

static int rmsnorm_row_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct row_args a = row_args_of(call, begin, end, false);
    return launch_rows(call, &a);
}

NB_KERNEL(rmsnorm_row, .summary = "RMSNorm, rows in registers of a warp, a block or a cluster", .op = NB_OP_RMSNORM,
          .formulas = {NB_EVERY_FORMULA}, .loads = 1, .stores = 1, .flops = 4, .run = rmsnorm_row_run,
          .chain = rows_chain, .range = square_range, CUDA_ROWS);
