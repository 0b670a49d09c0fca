// SPDX-License-Identifier: Apache-2.0
/* LayerNorm on a GPU with its statistics at the size of x: two launches, and x is read twice. Errors as layernorm_row. */
#include "kernels/cuda/stored.h"

static int layernorm_expanded_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return stored_run(call, true, true);
}
static size_t layernorm_expanded_scratch_bytes(const struct nb_call *call) { return stored_bytes(call, true); }

NB_KERNEL(layernorm_expanded, .summary = "LayerNorm, statistics at the size of x, in two launches",
          .op = NB_OP_LAYERNORM, .stats = NB_STATS_EXPANDED, .variance = NB_VAR_TWOPASS,
          .loads = 2 + 2 * 4.0f / sizeof(elem), .stores = 1 + 2 * 4.0f / sizeof(elem), .flops = 8,
          .run = layernorm_expanded_run, .scratch_bytes = layernorm_expanded_scratch_bytes, .range = mean_range,
          CUDA_STORED);
