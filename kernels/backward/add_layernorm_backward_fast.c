// SPDX-License-Identifier: Apache-2.0
/* Backward of a residual add and LayerNorm: x is the sum that the forward call stored, and dx = dresidual_out + the norm's own
 * gradient, rounded once; otherwise as layernorm_backward_fast. */
#define GRADIENT_CENTRE true
#define GRADIENT_RESIDUAL true
#include "kernels/backward/gradient.h"

/* Loads: x and dy, twice, dresidual_out. */
NB_KERNEL(add_layernorm_backward_fast, .summary = "residual add and LayerNorm backward, one sweep",
          .op = NB_OP_ADD_LAYERNORM, .pass = NB_BACKWARD, .formulas = {NB_EVERY_GRADIENT, .round_sums = NB_ALL(2)},
          .loads = 5, .flops = 15, GRADIENT_KERNEL, GRADIENT_NATIVE);
