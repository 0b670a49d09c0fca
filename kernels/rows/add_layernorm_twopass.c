// SPDX-License-Identifier: Apache-2.0
/* Residual add and LayerNorm: residual_out = x + residual, y = layernorm of it, mean and variance in two passes. Error as
 * layernorm_twopass, about the sum that the formula names (rounded to the dtype, or f32). */
#include "kernels/rows/add.h"

NB_INLINE struct row_stats stats(const struct nb_call *call, int64_t row, bool round) {
    const float n = (float)call->cols;
    struct row_source first = adding_source(call, row, round), again = sum_source(call, row, round);
    float mean = vec_sum(reduce_lanes(first, call->cols, 0.0f, step_sum, ROW_ACCUMULATORS)) / n;
    float squares = vec_sum(reduce_lanes(again, call->cols, mean, step_square_about, ROW_ACCUMULATORS));
    return (struct row_stats){.mean = mean, .scale = row_scale(squares / n, call)};
}
static __attribute__((noinline)) struct row_stats stats_rounded(const struct nb_call *call, int64_t row) {
    return stats(call, row, true);
}
static __attribute__((noinline)) struct row_stats stats_unrounded(const struct nb_call *call, int64_t row) {
    return stats(call, row, false);
}

static int add_layernorm_twopass_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return norm_rows_of_sum(call, begin, end, stats_rounded, stats_unrounded, true);
}

/* Loads for a rounded sum; one more for each later sweep that adds again. */
NB_KERNEL(add_layernorm_twopass, .summary = "residual add and LayerNorm, three sweeps", .op = NB_OP_ADD_LAYERNORM,
          .variance = NB_VAR_TWOPASS, .formulas = {NB_EVERY_FORMULA, .round_sums = NB_ALL(2)}, .loads = 4, .stores = 2,
          .flops = 9, .run = add_layernorm_twopass_run, .row_local = always_row_local, .chain = row_chain,
          .range = mean_range);
