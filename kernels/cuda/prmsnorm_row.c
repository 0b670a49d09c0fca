// SPDX-License-Identifier: Apache-2.0
/* pRMSNorm on a GPU: the mean square of the first k elements scales the row. Error as rmsnorm_row. */
#include "kernels/cuda/rows.h"

static int prmsnorm_row_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct row_args a = row_args_of(call, begin, end, false);
    a.seen = call->k;
    return launch_rows(call, &a);
}

NB_KERNEL(prmsnorm_row, .summary = "pRMSNorm, statistics of the first k elements", .op = NB_OP_PRMSNORM,
          .formulas = {NB_EVERY_FORMULA}, .loads = 1, .stores = 1, .flops = 4, .run = prmsnorm_row_run,
          .chain = rows_chain, .range = square_range, .row_local = always_row_local,
          .applicable = prefix_row_applicable);
