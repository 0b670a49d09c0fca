// SPDX-License-Identifier: Apache-2.0
/* LayerNorm on a GPU, a row in one launch: the mean, then the squares about it. Errors of mean and variance as layernorm_twopass. */
#include "kernels/cuda/rows.h"

static int layernorm_row_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct row_args a = row_args_of(call, begin, end, true);
    return launch_rows(call, &a);
}

NB_KERNEL(layernorm_row, .summary = "LayerNorm, rows in registers of a warp, a block or a cluster",
          .op = NB_OP_LAYERNORM, .variance = NB_VAR_TWOPASS, .formulas = {NB_EVERY_FORMULA}, .loads = 1, .stores = 1,
          .flops = 8, .run = layernorm_row_run, .chain = rows_chain, .range = mean_range, CUDA_ROWS);
