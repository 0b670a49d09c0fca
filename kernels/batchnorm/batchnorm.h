// SPDX-License-Identifier: Apache-2.0
/* What the BatchNorm kernels share: sizes, outputs of a channel, the sweep over a channel's planes (NCHW) or over rows of
 * channels (NHWC), and inference. In training NCHW has one phase whose units are channels: statistics, then the sweep while
 * the channel's planes are in the cache. NHWC has phases: partial sums of blocks of rows, their combination by columns, the
 * sweep. The blocks depend on the shape alone. */
#pragma once

#include "kernels/shared/normalize.h"

#ifndef BLOCKS_MAX
#define BLOCKS_MAX 16
#endif
#define ROW_GROUP 8 /* rows whose elements are added in registers before an array of sums is touched */

static inline bool is_nchw(const struct nb_call *call) { return call->layout == NB_NCHW; }
static inline bool is_training(const struct nb_call *call) { return call->mode == NB_TRAINING; }
static inline int64_t values_per_channel(const struct nb_call *call) { return call->n * call->hw; }

/* As PyTorch: one value has no variance, and the running variance would divide by n - 1 = 0. */
static inline const char *batchnorm_applicable(const struct nb_call *call) {
    if (call->layout != NB_NCHW && call->layout != NB_NHWC)
        return "batchnorm needs a shape with channels: nchw:... or nhwc:...";
    if (is_training(call) && values_per_channel(call) < 2) return "training needs more than one value per channel";
    return NULL;
}

/* For kernels that differ from batchnorm_twopass in the variance alone. */
static inline const char *training_applicable(const struct nb_call *call) {
    if (!is_training(call)) return "inference takes no variance: batchnorm_twopass and batchnorm_folded do it";
    return batchnorm_applicable(call);
}

/* ---- blocks of rows (NHWC) ------------------------------------------------------------------------------------------- */

static inline int64_t rows_per_block(const struct nb_call *call) {
    const int64_t groups = (call->rows + ROW_GROUP - 1) / ROW_GROUP;
    return (groups + BLOCKS_MAX - 1) / BLOCKS_MAX * ROW_GROUP;
}
static inline int64_t n_blocks(const struct nb_call *call) {
    return (call->rows + rows_per_block(call) - 1) / rows_per_block(call);
}
static inline int64_t block_rows(const struct nb_call *call, int64_t block) {
    const int64_t left = call->rows - block * rows_per_block(call);
    return left < rows_per_block(call) ? left : rows_per_block(call);
}

/* ---- scratch (NHWC, training): arrays over channels ------------------------------------------------------------------ */

enum channel_array { A_MEAN, A_SCALE, A_GAMMA, A_BETA, A_PARTIAL, N_CHANNEL_ARRAYS = A_PARTIAL };

static inline int64_t array_length(const struct nb_call *call) { return (call->c + 15) / 16 * 16; }
static inline float *channel_array(const struct nb_call *call, int array) {
    return (float *)call->scratch + array * array_length(call);
}
/* Array `which` of `per_block` partial results of a block. */
static inline float *partial_array(const struct nb_call *call, int64_t block, int per_block, int which) {
    return channel_array(call, A_PARTIAL) + (block * per_block + which) * array_length(call);
}
static inline size_t batchnorm_scratch(const struct nb_call *call, int per_block) {
    if (is_nchw(call) || !is_training(call)) return 0;
    return (size_t)((N_CHANNEL_ARRAYS + per_block * n_blocks(call)) * array_length(call)) * sizeof(float);
}

/* ---- a channel's outputs ------------------------------------------------------------------------------------------------ */

/* momentum is the weight of the new value; the variance kept is the unbiased one. In double, as PyTorch does it. */
static inline float running_mean(const struct nb_call *call, int64_t channel, float mean) {
    const double m = call->momentum;
    return (float)((1.0 - m) * call->running_mean_in[channel] + m * mean);
}
static inline float running_var(const struct nb_call *call, int64_t channel, float var) {
    const double m = call->momentum, n = (double)values_per_channel(call);
    return (float)((1.0 - m) * call->running_var_in[channel] + m * (var * (n / (n - 1.0))));
}
static inline bool wants_running_mean(const struct nb_call *call) {
    return call->running_mean_out && call->running_mean_in;
}
static inline bool wants_running_var(const struct nb_call *call) {
    return call->running_var_out && call->running_var_in;
}

/* The scale of a channel whose batch statistics are known, all its outputs written. */
NB_ONCE float finish_channel(const struct nb_call *call, int64_t channel, float mean, float var) {
    const float scale = row_scale(var, call);
    if (call->mean) call->mean[channel] = mean;
    if (call->rstd) call->rstd[channel] = scale_to_rstd(scale, &call->formula);
    if (wants_running_mean(call)) call->running_mean_out[channel] = running_mean(call, channel, mean);
    if (wants_running_var(call)) call->running_var_out[channel] = running_var(call, channel, var);
    return scale;
}

/* ---- sweeps --------------------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void sweep_planes(const struct sweep *s, const struct nb_formula *f) {
    const struct sweep_form usual = {.centre = true, .per_row = true, .affine = NB_AFFINE_GAMMA_BETA};
    sweep_of_formula(s, f, usual, usual.affine);
}
static __attribute__((noinline)) void sweep_channels(const struct sweep *s, const struct nb_formula *f) {
    const struct sweep_form usual = {.centre = true, .affine = NB_AFFINE_GAMMA_BETA};
    sweep_of_formula(s, f, usual, usual.affine);
}

/* NCHW: n_planes planes of one channel, from row `first` on, c rows apart. */
static inline void normalize_planes(const struct nb_call *call, int64_t first, int64_t n_planes, float mean,
                                    float scale) {
    const int64_t channel = first % call->c;
    const float gamma = gamma_of(call, channel), beta = beta_of(call, channel);
    struct sweep s = {.x = row_in(call->x, call->x_stride, first),
                      .y = row_out(call->y, call->y_stride, first),
                      .x_stride = call->x_stride * call->c,
                      .y_stride = call->y_stride * call->c,
                      .n_rows = n_planes,
                      .n_cols = call->cols,
                      .mean = &mean,
                      .scale = &scale,
                      .gamma = &gamma,
                      .beta = &beta};
    sweep_planes(&s, &call->formula);
}

/* NHWC: rows [begin, end), channels [first, first + n), whose statistics and parameters start at the pointers given. */
NB_ONCE void normalize_channels(const struct nb_call *call, int64_t begin, int64_t end, int64_t first, int64_t n,
                                const float *mean, const float *scale, const float *gamma, const float *beta) {
    struct sweep s = {.x = row_in(call->x, call->x_stride, begin) + first,
                      .y = row_out(call->y, call->y_stride, begin) + first,
                      .x_stride = call->x_stride,
                      .y_stride = call->y_stride,
                      .n_rows = end - begin,
                      .n_cols = n,
                      .mean = mean,
                      .scale = scale,
                      .gamma = gamma,
                      .beta = beta};
    sweep_channels(&s, &call->formula);
}

/* ---- the frame of training ------------------------------------------------------------------------------------------------- */

struct channel_stats {
    float mean, var; /* biased */
};
typedef struct channel_stats (*channel_stats_fn)(const struct nb_call *call, int64_t channel);

/* NCHW: channels [begin, end). */
static inline void train_planes(const struct nb_call *call, int64_t begin, int64_t end, channel_stats_fn stats_of) {
    for (int64_t channel = begin; channel < end; channel++) {
        const struct channel_stats m = stats_of(call, channel);
        normalize_planes(call, channel, call->n, m.mean, finish_channel(call, channel, m.mean, m.var));
    }
}
/* NHWC, last phase: rows [begin, end). */
static inline void train_rows(const struct nb_call *call, int64_t begin, int64_t end) {
    normalize_channels(call, begin, end, 0, call->c, channel_array(call, A_MEAN), channel_array(call, A_SCALE),
                       channel_array(call, A_GAMMA), channel_array(call, A_BETA));
}
/* Units of the three phases of kernels whose statistics take one pass over x. */
static inline int one_pass_phases(const struct nb_call *call) { return is_nchw(call) ? 1 : 3; }
static inline int64_t one_pass_units(const struct nb_call *call, int phase) {
    if (is_nchw(call) || phase == 1) return call->c;
    return phase == 0 ? n_blocks(call) : call->rows;
}
static inline size_t one_pass_scratch(const struct nb_call *call) { return batchnorm_scratch(call, 2); }

/* NHWC: what train_rows() reads, for columns [begin, end) whose mean is in its array already and whose variance is in that of
 * the scale. */
NB_ONCE void finish_channel_columns(const struct nb_call *call, int64_t begin, int64_t end) {
    float *mean = channel_array(call, A_MEAN), *scale = channel_array(call, A_SCALE);
    for (int64_t i = begin; i < end; i++) scale[i] = finish_channel(call, i, mean[i], scale[i]);
    store_gamma(call, channel_array(call, A_GAMMA) + begin, begin, end);
    store_beta(call, channel_array(call, A_BETA) + begin, begin, end);
}

/* What the backward kernels of BatchNorm share. With N values in a channel, w = gamma (or 1 + gamma, or 1), d = x - mean:
 *   dbeta = sum dy,  dgamma = rstd * sum dy * d
 *   training   dx = w * rstd * (dy - dbeta / N - rstd * d * dgamma / N)
 *   inference  dx = w * rstd * dy */

/* Are the sums over the batch needed at all? */
static inline bool sums_gradients(const struct nb_call *call) {
    return is_training(call) || call->dgamma || call->dbeta;
}
