// SPDX-License-Identifier: Apache-2.0
/* RMSNorm on a GPU with its statistics as a [rows, 1] tensor: two launches, and x is read twice. Errors as rmsnorm_row. */
#include "kernels/cuda/stored.h"

static int rmsnorm_keepdim_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return stored_run(call, false, false);
}
static size_t rmsnorm_keepdim_scratch_bytes(const struct nb_call *call) { return stored_bytes(call, false); }

NB_KERNEL(rmsnorm_keepdim, .summary = "RMSNorm, statistics as a [rows, 1] tensor, in two launches", .op = NB_OP_RMSNORM,
          .stats = NB_STATS_KEEPDIM, .loads = 2, .stores = 1, .flops = 4, .run = rmsnorm_keepdim_run,
          .scratch_bytes = rmsnorm_keepdim_scratch_bytes, .range = square_range, CUDA_STORED);
