// SPDX-License-Identifier: Apache-2.0
/* The copy for a backward pass: x and dy are loaded, dx is stored, once each. Non-temporal stores, no arithmetic. */
#include "kernels/copies/baseline_copy.h"

static int copy_backward_stream_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return copy_rows(call, begin, end, (struct copy_form){.loads = 2, .stores = 1, .backward = true, .stream = true});
}

NB_KERNEL(copy_backward_stream, .summary = "x, dy -> dx, streaming stores", .op = NB_OP_COPY, .pass = NB_BACKWARD,
          .flags = NB_FLAG_STREAMING, .loads = 2, .stores = 1, .run = copy_backward_stream_run, COPY_KERNEL);
