// SPDX-License-Identifier: Apache-2.0
/* pRMSNorm (Zhang & Sennrich 2019, section 4) as rmsnorm_fast, with statistics of the
 * first k elements; error as rmsnorm_fast with k for n. */
#define FAST_PARTIAL true
#include "kernels/rows/fast_rows.h"

static int prmsnorm_fast_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return fast_run(call, phase, begin, end);
}

/* loads and flops for k = n; less for a smaller k. */
NB_KERNEL(prmsnorm_fast, .summary = "pRMSNorm, a row stored while a later one is summed", .op = NB_OP_PRMSNORM,
          .formulas = FAST_FORMULAS, .loads = 2, .stores = 1, .flops = 4, .run = prmsnorm_fast_run,
          .applicable = prefix_applicable, FAST_KERNEL);
