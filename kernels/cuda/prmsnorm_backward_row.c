// SPDX-License-Identifier: Apache-2.0
/* pRMSNorm backward on a GPU (gradient.cu): only the first k elements are pulled back. */
#include "kernels/cuda/gradient.h"

GRADIENT_KERNEL(prmsnorm_backward_row, false, call->k, .summary = "pRMSNorm backward, rows in registers",
                .op = NB_OP_PRMSNORM, .flops = 12, .applicable = prefix_row_applicable);
