// SPDX-License-Identifier: Apache-2.0
/* The roof of a residual add with a norm: two loads and two stores, y = x and residual_out = residual. No arithmetic. */
#include "kernels/copies/baseline_copy.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    return twin_rows(call, begin, end, (struct twin_form){.loads = 2, .stores = 2});
}

NB_KERNEL(twin_add_copy, .summary = "x, residual -> y, residual_out", .op = NB_OP_TWIN, .loads = 2, .stores = 2,
          .run = run, .row_local = twin_row_local, .chain = twin_chain);
