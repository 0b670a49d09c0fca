// SPDX-License-Identifier: Apache-2.0
/* RMSNorm backward on a GPU (gradient.cu). */
#include "kernels/cuda/gradient.h"

static int rmsnorm_backward_row_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return gradient_run(call, false, call->cols);
}

NB_KERNEL(rmsnorm_backward_row, .summary = "RMSNorm backward, rows in registers, column sums of blocks",
          .op = NB_OP_RMSNORM, .flops = 12, .run = rmsnorm_backward_row_run, CUDA_GRADIENT, CUDA_KERNEL);
