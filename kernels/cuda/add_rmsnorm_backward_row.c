// SPDX-License-Identifier: Apache-2.0
/* RMSNorm backward of a stored residual sum, on a GPU (gradient.cu), plus the gradient that reaches the sum past the norm: one rounding. */
#include "kernels/cuda/gradient.h"

GRADIENT_KERNEL(add_rmsnorm_backward_row, false, call->cols,
                .summary = "residual add and RMSNorm backward, rows in registers", .op = NB_OP_ADD_RMSNORM, .flops = 12,
                CUDA_KERNEL);
