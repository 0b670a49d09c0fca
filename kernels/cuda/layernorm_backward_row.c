// SPDX-License-Identifier: Apache-2.0
/* LayerNorm backward on a GPU (gradient.cu). */
#include "kernels/cuda/gradient.h"

static int layernorm_backward_row_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return gradient_run(call, true, call->cols);
}

NB_KERNEL(layernorm_backward_row, .summary = "LayerNorm backward, rows in registers, column sums of blocks",
          .op = NB_OP_LAYERNORM, .flops = 15, .run = layernorm_backward_row_run, CUDA_GRADIENT, CUDA_KERNEL);
