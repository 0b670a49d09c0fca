// SPDX-License-Identifier: Apache-2.0
/* LayerNorm backward on a GPU (gradient.cu). */
#include "kernels/cuda/gradient.h"

GRADIENT_KERNEL(layernorm_backward_row, true, call->cols,
                .summary = "LayerNorm backward, rows in registers, column sums of blocks", .op = NB_OP_LAYERNORM,
                .flops = 15, CUDA_KERNEL);
