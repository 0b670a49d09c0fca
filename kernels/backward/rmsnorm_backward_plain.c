// SPDX-License-Identifier: Apache-2.0
/* RMSNorm backward, row by row in two sweeps: mean of g xhat, then dx = rstd (g - xhat mean(g xhat)) and the sums of dgamma. */
#include "kernels/backward/backward_plain.h"

static int rmsnorm_backward_plain_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return backward_phase(call, phase, begin, end, (struct backward_form){.affine = NB_AFFINE_GAMMA});
}

NB_KERNEL(rmsnorm_backward_plain, .summary = "RMSNorm backward, two sweeps a row, column sums by row blocks",
          .op = NB_OP_RMSNORM, .pass = NB_BACKWARD, .formulas = {NB_EVERY_GRADIENT}, .flops = 12,
          .run = rmsnorm_backward_plain_run, BACKWARD_PLAIN);
