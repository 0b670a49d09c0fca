// SPDX-License-Identifier: Apache-2.0
/* Backward of a residual add and RMSNorm: x is the sum that the forward call stored, and dx = dresidual_out + the norm's own gradient,
 * rounded once; otherwise as rmsnorm_backward_fast. */
#define GRADIENT_RESIDUAL true
#include "kernels/backward/gradient.h"

NB_KERNEL(add_rmsnorm_backward_fast, .summary = "residual add and RMSNorm backward, one sweep", .op = NB_OP_ADD_RMSNORM,
          .pass = NB_BACKWARD, .flops = 11, GRADIENT_KERNEL, GRADIENT_NATIVE);
