// SPDX-License-Identifier: Apache-2.0
/* RMSNorm as fast as this vocabulary goes (fast_rows.h says how). Relative error of the mean square as rmsnorm_twopass; rows from 16384
 * elements on are summed in 16 segments, which shortens the chain. */
#include "kernels/rows/fast_rows.h"

static int rmsnorm_fast_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return fast_run(call, phase, begin, end);
}

NB_KERNEL(rmsnorm_fast, .summary = "RMSNorm, a row stored while a later one is summed", .op = NB_OP_RMSNORM,
          .formulas = FAST_FORMULAS, .loads = 2, .stores = 1, .flops = 4, .run = rmsnorm_fast_run, FAST_KERNEL);
