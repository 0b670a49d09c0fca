// SPDX-License-Identifier: Apache-2.0
/* Does nothing: what is left is the harness's own time for a call. */
#include "kernels/copies/baseline_copy.h"

static int copy_null_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) { return 0; }

NB_KERNEL(copy_null, .summary = "does nothing", .op = NB_OP_COPY, .run = copy_null_run, .row_local = always_row_local,
          .chain = no_chain);
