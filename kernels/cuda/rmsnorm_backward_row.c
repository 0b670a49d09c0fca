// SPDX-License-Identifier: Apache-2.0
/* RMSNorm backward on a GPU (gradient.cu). */
#include "kernels/cuda/gradient.h"

GRADIENT_KERNEL(rmsnorm_backward_row, false, call->cols,
                .summary = "RMSNorm backward, rows in registers, column sums of blocks", .op = NB_OP_RMSNORM,
                .flops = 12, CUDA_KERNEL);
