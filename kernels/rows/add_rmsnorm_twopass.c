// SPDX-License-Identifier: Apache-2.0
/* Residual add and RMSNorm: residual_out = x + residual, y = rmsnorm of it. Error of the mean square as rmsnorm_twopass, about
 * the sum that the formula names (rounded to the dtype, or f32); the f32 sum itself is off by up to u |x + residual|. */
#include "kernels/rows/add.h"

NB_INLINE struct row_stats stats(const struct nb_call *call, int64_t row, bool round) {
    struct row_source sum = adding_source(call, row, round);
    float squares = vec_sum(reduce_lanes(sum, call->cols, 0.0f, step_square, ROW_ACCUMULATORS));
    return (struct row_stats){.scale = row_scale(squares / (float)call->cols, call)};
}
static __attribute__((noinline)) struct row_stats stats_rounded(const struct nb_call *call, int64_t row) {
    return stats(call, row, true);
}
static __attribute__((noinline)) struct row_stats stats_unrounded(const struct nb_call *call, int64_t row) {
    return stats(call, row, false);
}

static int add_rmsnorm_twopass_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return norm_rows_of_sum(call, begin, end, stats_rounded, stats_unrounded, false);
}

/* Loads for a rounded sum; one more for each later sweep that adds again. */
NB_KERNEL(add_rmsnorm_twopass, .summary = "residual add and RMSNorm, two sweeps", .op = NB_OP_ADD_RMSNORM,
          .formulas = {NB_EVERY_FORMULA, .round_sums = NB_ALL(2)}, .loads = 3, .stores = 2, .flops = 5,
          .run = add_rmsnorm_twopass_run, .row_local = always_row_local, .chain = row_chain, .range = square_range);
