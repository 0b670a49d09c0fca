// SPDX-License-Identifier: Apache-2.0
/* The roof of a backward pass: x and dy are loaded, dx is stored, once each. No arithmetic. */
#include "kernels/copies/baseline_copy.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    return twin_rows(call, begin, end, (struct twin_form){.loads = 2, .stores = 1, .backward = true});
}

NB_KERNEL(twin_backward, .summary = "x, dy -> dx", .op = NB_OP_TWIN, .pass = NB_BACKWARD, .loads = 2, .stores = 1,
          .run = run, .row_local = twin_row_local, .chain = twin_chain);
