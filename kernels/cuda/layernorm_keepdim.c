// SPDX-License-Identifier: Apache-2.0
/* LayerNorm on a GPU with its statistics as a [rows, 1] tensor: two launches, and x is read twice. Errors as layernorm_row. */
#include "kernels/cuda/stored.h"

static int layernorm_keepdim_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return stored_run(call, true, false);
}
static size_t layernorm_keepdim_scratch_bytes(const struct nb_call *call) { return stored_bytes(call, false); }

NB_KERNEL(layernorm_keepdim, .summary = "LayerNorm, statistics as a [rows, 1] tensor, in two launches",
          .op = NB_OP_LAYERNORM, .stats = NB_STATS_KEEPDIM, .variance = NB_VAR_TWOPASS, .loads = 2, .stores = 1,
          .flops = 8, .run = layernorm_keepdim_run, .scratch_bytes = layernorm_keepdim_scratch_bytes,
          .range = mean_range, CUDA_STORED);
