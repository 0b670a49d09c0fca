// SPDX-License-Identifier: Apache-2.0
/* L2 normalization: sum of squares, then scale. The error of the sum is that of rmsnorm_twopass; its range is smaller, since
 * the sum is not divided by n: f32 overflows from rms(x) = 1.8e19 / sqrt(n). */
#define ROW_CENTRE false
#include "kernels/rows/row.h"

static __attribute__((noinline)) struct row_stats stats(const struct nb_call *call, int64_t row) {
    const elem *x = row_in(call->x, call->x_stride, row);
    return (struct row_stats){.scale = row_scale(sum_squares(x, call->cols), call)};
}

#define L2_FORMULAS                                                                                                    \
    {                                                                                                                  \
        .roots = NB_ALL(NB_N_ROOTS), .eps_places = NB_ALL(NB_N_EPS_PLACES), .casts = NB_ALL(NB_N_CASTS),               \
        .weight_offsets = NB_ALL(2), .affines = NB_BIT(NB_AFFINE_NONE) | NB_BIT(NB_AFFINE_GAMMA),                      \
        .params = NB_ALL(NB_N_PARAMS)                                                                                  \
    }

NB_KERNEL(l2norm_twopass, .summary = "L2 normalization, sum of squares then scale, 8 accumulators", .op = NB_OP_L2NORM,
          .formulas = L2_FORMULAS, .loads = 2, .stores = 1, .flops = 4, .run = row_run, .row_local = always_row_local,
          .chain = row_chain, .range = square_range);
