// SPDX-License-Identifier: Apache-2.0
/* The copy for anything that only reads a tensor: x is loaded once. No arithmetic. */
#include "kernels/copies/baseline_copy.h"

static int copy_read_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return copy_rows(call, begin, end, (struct copy_form){.loads = 1, .stores = 0});
}

NB_KERNEL(copy_read, .summary = "reads x", .op = NB_OP_COPY, .loads = 1, .stores = 0, .run = copy_read_run,
          COPY_KERNEL);
