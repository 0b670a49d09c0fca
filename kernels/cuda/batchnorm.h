// SPDX-License-Identifier: Apache-2.0
/* The host part of BatchNorm. NCHW in training: one launch, a channel a block or a cluster. NHWC: sums over columns, then the channels'
 * values, then each element. Inference: the channels' values, then each element. */
#pragma once

#include "kernels/batchnorm/batchnorm.h"
#include "kernels/cuda/apply.h"
#include "kernels/cuda/columns.h"
#include "kernels/shared/reduce.h"

enum { CLUSTER_VALUES = 32 * BLOCK }; /* more values of a channel than these are shared by a cluster */

static inline const char *batchnorm_row_applicable(const struct nb_call *call) {
    const char *const reason = cuda_applicable(call);
    return reason ? reason : batchnorm_applicable(call);
}
static inline struct layout channel_layout(const struct nb_call *call, bool clusters) {
    const bool shared = clusters && values_per_channel(call) > CLUSTER_VALUES;
    return (struct layout){.team = {BLOCK, shared ? CLUSTER : 1}, .block = BLOCK};
}
static inline bool planes_are_wide(const struct nb_call *call, const void *y, int64_t y_stride) {
    return call->hw % VECTOR == 0 && is_wide(call->x, call->x_stride) && is_wide(call->dy, call->dy_stride) &&
           is_wide(y, y_stride);
}
/* Longest chain of a sum over a channel: the vectors of a thread, each with the end of a plane at worst. */
static inline int64_t channel_chain(const struct nb_call *call) {
    if (!is_nchw(call)) return columns_sum_chain(call->rows);
    const int64_t padded = call->n * padded_to(call->hw, VECTOR);
    return larger(layout_chain(channel_layout(call, false), padded), layout_chain(channel_layout(call, true), padded));
}

/* Arrays over channels in scratch, partial sums behind them. */
enum { MEANS, SCALES, MEAN_GS = MEANS, MEAN_PRODUCTS = SCALES, DGAMMAS, DBETAS, CHANNEL_ARRAYS };
static inline float *channels_in_scratch(const struct nb_call *call, int which) {
    return (float *)call->scratch + which * padded_columns(call->c);
}
static inline size_t channels_scratch(const struct nb_call *call) {
    const size_t arrays = (size_t)(CHANNEL_ARRAYS * padded_columns(call->c)) * sizeof(float);
    return is_nchw(call) ? arrays : arrays + columns_scratch(call->rows, call->c, 2);
}

static inline struct channel_args channel_args_of(const struct nb_call *call) {
    const bool affine = call->formula.affine != NB_AFFINE_NONE;
    return (struct channel_args){
        .formula = formula_args_of(call, true),
        .x = call->x,
        .dy = call->dy,
        .gamma = affine ? call->gamma : NULL,
        .beta = call->formula.affine == NB_AFFINE_GAMMA_BETA ? call->beta : NULL,
        .mean = call->mean,
        .rstd = call->rstd,
        .x_stride = call->x_stride,
        .dy_stride = call->dy_stride,
        .n = call->n,
        .c = call->c,
        .hw = call->hw,
        .momentum = call->momentum,
        .training = is_training(call),
    };
}
static inline int launch_planes(const struct nb_call *call, struct channel_args *a, const char *part) {
    const struct layout l = channel_layout(call, nb_launch_device()->has_clusters);
    a->team = l.team;
    return launch_part(call, "batchnorm", planes_are_wide(call, a->y, a->y_stride), part, call->c * l.team.cluster,
                       BLOCK, l.team.cluster, TEAM_FLOATS * sizeof(float), a);
}
/* A thread for each channel. */
static inline int launch_channels(const struct nb_call *call, const struct channel_args *a, const char *function) {
    return launch_function(call, function, divided(call->c, BLOCK), BLOCK, 1, 0, a);
}

/* y or dx from statistics and parameters of channels, which lie by rows (NCHW) or by columns. part: as launch_apply(). */
static inline int apply_channels(const struct nb_call *call, const struct channel_args *a, const float *mean,
                                 const float *scale, const char *part) {
    const struct place at = is_nchw(call) ? (struct place){call->c, 1, 0} : (struct place){1, 0, 1};
    const struct apply_args apply = {.formula = a->formula,
                                     .stats = at,
                                     .params = at,
                                     .x = a->x,
                                     .dy = a->dy,
                                     .gamma = a->gamma,
                                     .beta = a->beta,
                                     .y = a->y,
                                     .mean = mean,
                                     .scale = scale,
                                     .mean_g = a->mean_g,
                                     .mean_product = a->mean_product,
                                     .x_stride = a->x_stride,
                                     .dy_stride = a->dy_stride,
                                     .y_stride = a->y_stride,
                                     .rows = call->rows,
                                     .cols = call->cols};
    return launch_apply(call, &apply, part);
}
/* One or two sums over the columns, to arrays of the channels. */
static inline int sum_channels(const struct nb_call *call, struct column_args a, float *first, float *second,
                               float divisor) {
    a.partial = channels_in_scratch(call, CHANNEL_ARRAYS);
    a.rows = call->rows;
    a.cols = call->c;
    a.padded = padded_columns(call->c);
    a.rows_per_block = rows_of_block(call->rows);
    a.x = call->x;
    a.x_stride = call->x_stride;
    a.dy_stride = call->dy_stride;
    const bool wide = call->c % VECTOR == 0 && is_wide(a.x, a.x_stride) && is_wide(a.dy, a.dy_stride) &&
                      (uintptr_t)a.shift % 16 == 0 && (uintptr_t)a.rstd % 16 == 0;
    const int code = launch_column_sums(call, &a, wide);
    const struct add_args add = {.partial = a.partial,
                                 .out = {first, second},
                                 .padded = a.padded,
                                 .cols = a.cols,
                                 .blocks = column_blocks(call->rows),
                                 .n = a.dy ? 2 : 1,
                                 .divisor = {divisor, divisor}};
    return code ? code : launch_add_columns(call, &add);
}
