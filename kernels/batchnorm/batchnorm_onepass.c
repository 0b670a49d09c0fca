// SPDX-License-Identifier: Apache-2.0
/* BatchNorm with the variance as E[x^2] - mean^2 and nothing clamped: one pass over x for the statistics. Relative error of the
 * variance: up to (3 h + 4) u (1 + rho^2), rho = |mean| / sigma, h = chain; the difference can be negative and the result NaN,
 * from rho of about 1000 on for sure. Training only. */
#include "kernels/batchnorm/batchnorm_sums.h"
#include "kernels/shared/moments.h"

static __attribute__((noinline)) struct moments plane_moments(const elem *x, int64_t n) {
    return moments_about(x, n, 0.0f);
}

static struct channel_stats stats_of(const struct nb_call *call, int64_t channel) {
    const float n = (float)values_per_channel(call);
    struct sum_tree sum = {.n = 0}, squares = {.n = 0};
    for (int64_t r = channel; r < call->rows; r += call->c) {
        const struct moments m = plane_moments(row_in(call->x, call->x_stride, r), call->cols);
        tree_add(&sum, m.sum);
        tree_add(&squares, m.squares);
    }
    const float mean = tree_total(&sum) / n;
    return (struct channel_stats){mean, tree_total(&squares) / n - mean * mean};
}

static void sums_of_block(const struct nb_call *call, int64_t block) {
    struct column_sums c = {.sum = partial_array(call, block, 2, 0), .squares = partial_array(call, block, 2, 1)};
    sum_block(call, block, c, (struct column_form){.sum = true, .squares = true});
}
static void combine(const struct nb_call *call, int64_t begin, int64_t end) {
    float *mean = channel_array(call, A_MEAN), *var = channel_array(call, A_SCALE);
    mean_of_blocks(call, 2, 0, mean, begin, end);
    mean_of_blocks(call, 2, 1, var, begin, end);
    for (int64_t i = begin; i < end; i++) var[i] = var[i] - mean[i] * mean[i];
    finish_channel_columns(call, begin, end);
}

static int batchnorm_onepass_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    if (is_nchw(call))
        train_planes(call, begin, end, stats_of);
    else if (phase == 1)
        combine(call, begin, end);
    else if (phase == 2)
        train_rows(call, begin, end);
    else
        for (int64_t block = begin; block < end; block++) sums_of_block(call, block);
    return 0;
}

static int64_t batchnorm_onepass_chain(const struct nb_call *call) {
    if (!is_nchw(call)) return columns_chain(call);
    return reduction_chain(call->hw, MOMENT_ACCUMULATORS) + tree_depth(call->n);
}

NB_KERNEL(batchnorm_onepass, .summary = "BatchNorm, E[x^2] - mean^2: cancels when the mean is large",
          .op = NB_OP_BATCHNORM, .variance = NB_VAR_ONEPASS, .formulas = {NB_EVERY_FORMULA}, .loads = 2, .stores = 1,
          .flops = 8, .run = batchnorm_onepass_run, .applicable = training_applicable, .chain = batchnorm_onepass_chain,
          .scratch_bytes = one_pass_scratch, .n_phases = one_pass_phases, .n_units = one_pass_units,
          .range = one_pass_range);
