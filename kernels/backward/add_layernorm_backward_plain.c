// SPDX-License-Identifier: Apache-2.0
/* LayerNorm backward of a stored residual sum, plus the gradient that reaches the sum past the norm, in one fma: dx is rounded once. */
#define BACKWARD_FORM .centre = true, .add = true, .affine = NB_AFFINE_GAMMA_BETA
#include "kernels/backward/backward_plain.h"

NB_KERNEL(add_layernorm_backward_plain, .summary = "residual add and LayerNorm backward, two sweeps a row",
          .op = NB_OP_ADD_LAYERNORM, .pass = NB_BACKWARD, .formulas = {NB_EVERY_GRADIENT}, .flops = 15, BACKWARD_PLAIN);
