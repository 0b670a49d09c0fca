// SPDX-License-Identifier: Apache-2.0
/* The copy for a residual add with a norm: two loads and two stores, y = x and residual_out
 * = residual. Non-temporal stores, no arithmetic. */
#include "kernels/copies/baseline_copy.h"

static int copy_add_stream_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return copy_rows(call, begin, end, (struct copy_form){.loads = 2, .stores = 2, .stream = true});
}

NB_KERNEL(copy_add_stream, .summary = "x, residual -> y, residual_out, streaming stores", .op = NB_OP_COPY,
          .flags = NB_FLAG_STREAMING, .loads = 2, .stores = 2, .run = copy_add_stream_run, COPY_KERNEL);
