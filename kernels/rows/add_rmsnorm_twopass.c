// SPDX-License-Identifier: Apache-2.0
/* Residual add and RMSNorm: residual_out = x + residual, y = rmsnorm of it. Error of the mean square as rmsnorm_twopass, about
 * the sum that the formula names (rounded to the dtype, or f32); the f32 sum itself is off by up to u |x + residual|. */
#define ADD_CENTRE false
#include "kernels/rows/add.h"

NB_INLINE struct row_stats stats(const struct nb_call *call, int64_t row, bool round) {
    struct row_source sum = adding_source(call, row, round);
    float squares = vec_sum(reduce_lanes(sum, call->cols, 0.0f, step_square, ROW_ACCUMULATORS));
    return (struct row_stats){.scale = row_scale(squares / (float)call->cols, call)};
}

NB_KERNEL(add_rmsnorm_twopass, .summary = "residual add and RMSNorm, two sweeps", .op = NB_OP_ADD_RMSNORM, .loads = 3,
          .flops = 5, .range = square_range, ADD_KERNEL);
