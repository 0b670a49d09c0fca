// SPDX-License-Identifier: Apache-2.0
/* The copy for a residual add with a norm: two loads and two stores, y = x and residual_out = residual. No arithmetic. */
#include "kernels/copies/baseline_copy.h"

static int copy_add_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return copy_rows(call, begin, end, (struct copy_form){.loads = 2, .stores = 2});
}

NB_KERNEL(copy_add, .summary = "x, residual -> y, residual_out", .op = NB_OP_COPY, .loads = 2, .stores = 2,
          .run = copy_add_run, COPY_KERNEL);
