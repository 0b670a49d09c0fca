// SPDX-License-Identifier: Apache-2.0
/* The copy for two loads and a store, such as a residual add: x and residual are loaded, y = x | residual stored. No arithmetic. */
#include "kernels/copies/baseline_copy.h"

static int copy_triad_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return copy_rows(call, begin, end, (struct copy_form){.loads = 2, .stores = 1});
}

NB_KERNEL(copy_triad, .summary = "x, residual -> y", .op = NB_OP_COPY, .loads = 2, .stores = 1, .run = copy_triad_run,
          COPY_KERNEL);
