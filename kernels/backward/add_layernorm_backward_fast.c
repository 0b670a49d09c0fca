// SPDX-License-Identifier: Apache-2.0
/* Backward of a residual add and LayerNorm: x is the sum that the forward call stored, and dx = dresidual_out + the norm's own
 * gradient, rounded once; otherwise as layernorm_backward_fast. */
#define GRADIENT_CENTRE true
#define GRADIENT_RESIDUAL true
#include "kernels/backward/gradient.h"

NB_KERNEL(add_layernorm_backward_fast, .summary = "residual add and LayerNorm backward, one sweep",
          .op = NB_OP_ADD_LAYERNORM, .pass = NB_BACKWARD, .flops = 15, GRADIENT_KERNEL, GRADIENT_NATIVE);
