// SPDX-License-Identifier: Apache-2.0
/* pRMSNorm backward on a GPU (gradient.cu): only the first k elements are pulled back. */
#include "kernels/cuda/gradient.h"

static int prmsnorm_backward_row_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return gradient_run(call, false, call->k);
}

NB_KERNEL(prmsnorm_backward_row, .summary = "pRMSNorm backward, rows in registers", .op = NB_OP_PRMSNORM, .flops = 12,
          .run = prmsnorm_backward_row_run, CUDA_GRADIENT, .applicable = prefix_row_applicable);
