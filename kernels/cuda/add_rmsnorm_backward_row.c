// SPDX-License-Identifier: Apache-2.0
/* RMSNorm backward of a stored residual sum, on a GPU (gradient.cu), plus the gradient that reaches the sum past the norm: one rounding. */
#include "kernels/cuda/gradient.h"

static int add_rmsnorm_backward_row_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return gradient_run(call, false, call->cols);
}

NB_KERNEL(add_rmsnorm_backward_row, .summary = "residual add and RMSNorm backward, rows in registers",
          .op = NB_OP_ADD_RMSNORM, .flops = 12, .run = add_rmsnorm_backward_row_run, CUDA_GRADIENT, CUDA_KERNEL);
