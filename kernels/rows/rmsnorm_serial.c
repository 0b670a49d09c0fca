// SPDX-License-Identifier: Apache-2.0
/* RMSNorm with one vector accumulator in the sum of squares, as most libraries have it: every fma waits for the one before
 * (4 cycles a vector), so that a row in the cache is bound by latency; what more accumulators gain shows beside it.
 * Relative error of the mean square: at most (ceil(n / lanes) + log2(lanes) + 1) u, u = 2^-24, all terms being positive. */
#define ROW_CENTRE false
#include "kernels/rows/row.h"

static __attribute__((noinline)) struct row_stats stats(const struct nb_call *call, int64_t row) {
    const elem *x = row_in(call->x, call->x_stride, row);
    float sum = vec_sum(reduce_lanes(plain_source(x), call->cols, 0.0f, step_square, 1));
    return (struct row_stats){.scale = row_scale(sum / (float)call->cols, call)};
}

static int64_t rmsnorm_serial_chain(const struct nb_call *call) { return reduction_chain(call->cols, 1); }

NB_KERNEL(rmsnorm_serial, .summary = "RMSNorm, one accumulator, as most libraries", .op = NB_OP_RMSNORM, .loads = 2,
          .stores = 1, .flops = 4, .run = row_run, .chain = rmsnorm_serial_chain, .range = square_range, ROW_KERNEL);
