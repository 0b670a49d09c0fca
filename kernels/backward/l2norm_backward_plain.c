// SPDX-License-Identifier: Apache-2.0
/* L2 normalization backward: dx = rstd (g - xhat sum(g xhat)). */
#define BACKWARD_FORM .sum = true, .affine = NB_AFFINE_GAMMA
#include "kernels/backward/backward_plain.h"

#define L2_BACKWARD_FORMULAS                                                                                           \
    {                                                                                                                  \
        .roots = NB_BIT(NB_ROOT_MUL_RECIP), .weight_offsets = NB_ALL(2),                                               \
        .affines = NB_BIT(NB_AFFINE_NONE) | NB_BIT(NB_AFFINE_GAMMA), .params = NB_ALL(NB_N_PARAMS)                     \
    }

NB_KERNEL(l2norm_backward_plain, .summary = "L2 normalization backward, two sweeps a row, column sums by row blocks",
          .op = NB_OP_L2NORM, .pass = NB_BACKWARD, .formulas = L2_BACKWARD_FORMULAS, .flops = 12, BACKWARD_PLAIN);
