// SPDX-License-Identifier: Apache-2.0
/* BatchNorm, two-pass: mean, then mean of (x - mean)^2, then y = (x - mean) * scale * gamma + beta; in inference the running
 * statistics instead, each row by itself. Error of the variance: at most (chain + 3) * 2^-24, relative, and that of the mean
 * squared. */
#include "kernels/batchnorm/batchnorm_sums.h"

#define STRIP 1024 /* channels whose scale is formed at a time in NHWC inference: 16 KiB of coefficients */

static __attribute__((noinline)) float plane_sum(const elem *x, int64_t n) { return sum_elements(x, n); }
static __attribute__((noinline)) float plane_squares(const elem *x, int64_t n, float mean) {
    return sum_squares_about(x, n, mean);
}

static struct channel_stats stats_of(const struct nb_call *call, int64_t channel) {
    const float n = (float)values_per_channel(call);
    struct sum_tree sum = {.n = 0}, squares = {.n = 0};
    for (int64_t r = channel; r < call->rows; r += call->c)
        tree_add(&sum, plane_sum(row_in(call->x, call->x_stride, r), call->cols));
    const float mean = tree_total(&sum) / n;
    for (int64_t r = channel; r < call->rows; r += call->c)
        tree_add(&squares, plane_squares(row_in(call->x, call->x_stride, r), call->cols, mean));
    return (struct channel_stats){mean, tree_total(&squares) / n};
}

/* In inference the statistics are written where a channel is met first. */
static float running_scale(const struct nb_call *call, int64_t channel, bool first) {
    const float scale = row_scale(call->running_var_in[channel], call);
    if (first && call->mean) call->mean[channel] = call->running_mean_in[channel];
    if (first && call->rstd) call->rstd[channel] = scale_to_rstd(scale, &call->formula);
    return scale;
}
static void infer_planes(const struct nb_call *call, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
        const int64_t channel = r % call->c;
        normalize_planes(call, r, 1, call->running_mean_in[channel], running_scale(call, channel, r < call->c));
    }
}
static void infer_rows(const struct nb_call *call, int64_t begin, int64_t end) {
    float scale[STRIP], gamma[STRIP], beta[STRIP];
    for (int64_t first = 0; first < call->c; first += STRIP) {
        const int64_t n = call->c - first < STRIP ? call->c - first : STRIP;
        for (int64_t i = 0; i < n; i++) scale[i] = running_scale(call, first + i, begin == 0);
        store_gamma(call, gamma, first, first + n);
        store_beta(call, beta, first, first + n);
        normalize_channels(call, begin, end, first, n, call->running_mean_in + first, scale, gamma, beta);
    }
}

static void sum_of_block(const struct nb_call *call, int64_t block) {
    struct column_sums c = {.sum = partial_array(call, block, 1, 0)};
    sum_block(call, block, c, (struct column_form){.sum = true});
}
static void squares_of_block(const struct nb_call *call, int64_t block) {
    struct column_sums c = {.shift = channel_array(call, A_MEAN), .squares = partial_array(call, block, 1, 0)};
    sum_block(call, block, c, (struct column_form){.shift = true, .squares = true});
}

static void train_channels_last(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    switch (phase) {
    case 0:
        for (int64_t block = begin; block < end; block++) sum_of_block(call, block);
        break;
    case 1:
        mean_of_blocks(call, 1, 0, channel_array(call, A_MEAN), begin, end);
        break;
    case 2:
        for (int64_t block = begin; block < end; block++) squares_of_block(call, block);
        break;
    case 3:
        mean_of_blocks(call, 1, 0, channel_array(call, A_SCALE), begin, end);
        finish_channel_columns(call, begin, end);
        break;
    default:
        train_rows(call, begin, end);
    }
}

static int batchnorm_twopass_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    if (is_training(call)) {
        if (is_nchw(call))
            train_planes(call, begin, end, stats_of);
        else
            train_channels_last(call, phase, begin, end);
    } else if (is_nchw(call)) {
        infer_planes(call, begin, end);
    } else {
        infer_rows(call, begin, end);
    }
    return 0;
}

static int batchnorm_twopass_n_phases(const struct nb_call *call) {
    return is_training(call) && !is_nchw(call) ? 5 : 1;
}
static int64_t batchnorm_twopass_n_units(const struct nb_call *call, int phase) {
    if (!is_training(call)) return call->rows;
    if (is_nchw(call)) return call->c;
    const int64_t units[5] = {n_blocks(call), call->c, n_blocks(call), call->c, call->rows};
    return units[phase];
}
static int row_local(const struct nb_call *call) { return !is_training(call); }
static size_t batchnorm_twopass_scratch_bytes(const struct nb_call *call) { return batchnorm_scratch(call, 1); }

/* In training; in inference one load and one store. */
NB_KERNEL(batchnorm_twopass, .summary = "BatchNorm, mean then mean of (x - mean)^2; running statistics in inference",
          .op = NB_OP_BATCHNORM, .variance = NB_VAR_TWOPASS, .formulas = {NB_EVERY_FORMULA}, .loads = 3, .stores = 1,
          .flops = 8, .run = batchnorm_twopass_run, .applicable = batchnorm_applicable, .row_local = row_local,
          .chain = sums_chain, .scratch_bytes = batchnorm_twopass_scratch_bytes, .n_phases = batchnorm_twopass_n_phases,
          .n_units = batchnorm_twopass_n_units, .range = mean_range);
