// SPDX-License-Identifier: Apache-2.0
/* The copy for a backward pass through a residual add and a norm: x, dy and dresidual_out
 * are loaded, dx is stored, once each. No arithmetic. */
#include "kernels/copies/baseline_copy.h"

static int copy_add_backward_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return copy_rows(call, begin, end, (struct copy_form){.loads = 3, .stores = 1, .backward = true});
}

NB_KERNEL(copy_add_backward, .summary = "x, dy, dresidual_out -> dx", .op = NB_OP_COPY, .pass = NB_BACKWARD, .loads = 3,
          .stores = 1, .run = copy_add_backward_run, COPY_KERNEL);
