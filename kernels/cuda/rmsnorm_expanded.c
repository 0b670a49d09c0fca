// SPDX-License-Identifier: Apache-2.0
/* RMSNorm on a GPU with its statistics at the size of x: two launches, and x is read twice. Errors as rmsnorm_row. */
#include "kernels/cuda/stored.h"

static int rmsnorm_expanded_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return stored_run(call, false, true);
}
static size_t rmsnorm_expanded_scratch_bytes(const struct nb_call *call) { return stored_bytes(call, true); }

NB_KERNEL(rmsnorm_expanded, .summary = "RMSNorm, statistics at the size of x, in two launches", .op = NB_OP_RMSNORM,
          .stats = NB_STATS_EXPANDED, .loads = 2 + 1 * 4.0f / sizeof(elem), .stores = 1 + 1 * 4.0f / sizeof(elem),
          .flops = 4, .run = rmsnorm_expanded_run, .scratch_bytes = rmsnorm_expanded_scratch_bytes,
          .range = square_range, CUDA_STORED);
