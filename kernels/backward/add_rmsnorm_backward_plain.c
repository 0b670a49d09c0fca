// SPDX-License-Identifier: Apache-2.0
/* RMSNorm backward of a stored residual sum, plus the gradient that reaches the sum past the norm, in one fma: dx is rounded once. */
#define BACKWARD_FORM .add = true, .affine = NB_AFFINE_GAMMA
#include "kernels/backward/backward_plain.h"

NB_KERNEL(add_rmsnorm_backward_plain, .summary = "residual add and RMSNorm backward, two sweeps a row",
          .op = NB_OP_ADD_RMSNORM, .pass = NB_BACKWARD, .formulas = {NB_EVERY_GRADIENT}, .flops = 12, BACKWARD_PLAIN);
