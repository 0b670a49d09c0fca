// SPDX-License-Identifier: Apache-2.0
/* Residual add and LayerNorm: residual_out = x + residual, y = layernorm of it, mean and variance in two passes. Error as
 * layernorm_twopass, about the sum that the formula names (rounded to the dtype, or f32). */
#define ADD_CENTRE true
#include "kernels/rows/add.h"

NB_INLINE struct row_stats stats(const struct nb_call *call, int64_t row, bool round) {
    const float n = (float)call->cols;
    struct row_source first = adding_source(call, row, round), again = sum_source(call, row, round);
    float mean = vec_sum(reduce_lanes(first, call->cols, 0.0f, step_sum, ROW_ACCUMULATORS)) / n;
    float squares = vec_sum(reduce_lanes(again, call->cols, mean, step_square_about, ROW_ACCUMULATORS));
    return (struct row_stats){.mean = mean, .scale = row_scale(squares / n, call)};
}

NB_KERNEL(add_layernorm_twopass, .summary = "residual add and LayerNorm, three sweeps", .op = NB_OP_ADD_LAYERNORM,
          .variance = NB_VAR_TWOPASS, .loads = 4, .flops = 9, .range = mean_range, ADD_KERNEL);
