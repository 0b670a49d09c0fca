// SPDX-License-Identifier: Apache-2.0
/* pRMSNorm backward: the statistics saw the first k elements, so that only these are
 * pulled back, by the sum of g xhat over all elements / k. */
#define BACKWARD_FORM .prefix = true, .affine = NB_AFFINE_GAMMA
#include "kernels/backward/backward_plain.h"

NB_KERNEL(prmsnorm_backward_plain, .summary = "pRMSNorm backward, two sweeps a row, column sums by row blocks",
          .op = NB_OP_PRMSNORM, .pass = NB_BACKWARD, .formulas = {NB_EVERY_GRADIENT}, .flops = 12,
          .applicable = prefix_applicable, BACKWARD_PLAIN);
