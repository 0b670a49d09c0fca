// SPDX-License-Identifier: Apache-2.0
/* pRMSNorm (Zhang & Sennrich 2019, section 4): the mean square of the first k elements scales the whole vector, so that
 * the first sweep is k / n of RMSNorm's. Error of the mean square as rmsnorm_twopass with k for n. */
#define ROW_CENTRE false
#include "kernels/rows/row.h"

static __attribute__((noinline)) struct row_stats stats(const struct nb_call *call, int64_t row) {
    const elem *x = row_in(call->x, call->x_stride, row);
    float mean_square = sum_squares(x, call->k) / (float)call->k;
    return (struct row_stats){.scale = row_scale(mean_square, call)};
}

static int64_t prmsnorm_twopass_chain(const struct nb_call *call) { return sum_chain(call->k); }

/* loads and flops for k = n; less for a smaller k. */
NB_KERNEL(prmsnorm_twopass, .summary = "pRMSNorm, statistics of the first k elements", .op = NB_OP_PRMSNORM, .loads = 2,
          .stores = 1, .flops = 4, .run = row_run, .applicable = prefix_applicable, .chain = prmsnorm_twopass_chain,
          .range = square_range, ROW_KERNEL);
