// SPDX-License-Identifier: Apache-2.0
/* The copy for a forward norm: x is loaded and y stored, once each. x is prefetched, stores are non-temporal. No arithmetic. */
#include "kernels/copies/baseline_copy.h"

static int copy_stream_prefetch_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return copy_rows(call, begin, end, (struct copy_form){.loads = 1, .stores = 1, .stream = true, .prefetch = true});
}

NB_KERNEL(copy_stream_prefetch, .summary = "x -> y, prefetch and streaming stores", .op = NB_OP_COPY,
          .flags = NB_FLAG_STREAMING, .loads = 1, .stores = 1, .run = copy_stream_prefetch_run, COPY_KERNEL);
