// SPDX-License-Identifier: Apache-2.0
/* LayerNorm backward, row by row in two sweeps: means of g and g xhat, then dx = rstd (g - mean(g) - xhat mean(g xhat)) and the sums
 * of dgamma and dbeta. */
#define BACKWARD_FORM .centre = true, .affine = NB_AFFINE_GAMMA_BETA
#include "kernels/backward/backward_plain.h"

NB_KERNEL(layernorm_backward_plain, .summary = "LayerNorm backward, two sweeps a row, column sums by row blocks",
          .op = NB_OP_LAYERNORM, .pass = NB_BACKWARD, .formulas = {NB_EVERY_GRADIENT}, .flops = 15, BACKWARD_PLAIN);
