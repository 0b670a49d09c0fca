// SPDX-License-Identifier: Apache-2.0
/* pRMSNorm backward: the statistics saw the first k elements, so that only these are
 * pulled back, by the sum of g xhat over all elements / k. */
#include "kernels/backward/backward_plain.h"

static int prmsnorm_backward_plain_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return backward_phase(call, phase, begin, end, (struct backward_form){.prefix = true, .affine = NB_AFFINE_GAMMA});
}

NB_KERNEL(prmsnorm_backward_plain, .summary = "pRMSNorm backward, two sweeps a row, column sums by row blocks",
          .op = NB_OP_PRMSNORM, .pass = NB_BACKWARD, .formulas = {NB_EVERY_GRADIENT}, .flops = 12,
          .run = prmsnorm_backward_plain_run, .applicable = prefix_applicable, BACKWARD_PLAIN);
