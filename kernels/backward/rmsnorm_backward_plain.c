// SPDX-License-Identifier: Apache-2.0
/* RMSNorm backward, row by row in two sweeps: mean of g xhat, then dx = rstd (g - xhat mean(g xhat)) and the sums of dgamma. */
#define BACKWARD_FORM .affine = NB_AFFINE_GAMMA
#include "kernels/backward/backward_plain.h"

NB_KERNEL(rmsnorm_backward_plain, .summary = "RMSNorm backward, two sweeps a row, column sums by row blocks",
          .op = NB_OP_RMSNORM, .pass = NB_BACKWARD, .formulas = {NB_EVERY_GRADIENT}, .flops = 12, BACKWARD_PLAIN);
