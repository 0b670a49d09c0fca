// SPDX-License-Identifier: Apache-2.0
/* The recipe of composed BatchNorm: mean, x - mean, square, mean, + eps, root, scale, * gamma, + beta, each over the whole
 * tensor; in inference the running statistics instead of the means. Means of channels are taken by planes (NCHW) or from
 * partial sums of blocks of rows (NHWC), as the other BatchNorm kernels do. */
#pragma once

#include "kernels/batchnorm/sum_operations.h"
#include "kernels/shared/composed_norm.h"

/* Sums of the channels of t over the divisor, to a tensor of c values. */
static inline struct tensor channel_sum(struct program *p, struct tensor t, float divisor, struct tensor sum) {
    const struct nb_call *call = p->call;
    if (is_nchw(call)) {
        if (append(p, sum))
            p->step = (struct step){op_mean_planes, sum, t, .n_units = call->c, .cols = call->cols, .scalar = divisor};
        return sum;
    }
    const struct tensor partial = {.data = call->scratch, .stride = array_length(call)};
    if (append(p, partial))
        p->step = (struct step){op_sum_blocks, partial, t, .n_units = n_blocks(call), .cols = call->cols};
    return emit_column(p, op_mean_blocks, partial, sum, call->c, divisor);
}
static inline struct tensor channel_mean(struct program *p, struct tensor t) {
    return channel_sum(p, t, (float)values_per_channel(p->call), new_small(p, t.narrow, 1));
}

/* Running statistics as a tensor like those of the batch. */
static inline struct tensor given(struct program *p, const float *data) {
    const struct tensor t = {.data = (void *)data, .stride = 1};
    return COMPOSED_LOWP ? emit_column(p, op_cast, t, new_small(p, true, 1), p->call->c, 0.0f) : t;
}
static inline void update_running(struct program *p, step_fn run, struct tensor stat) {
    emit_column(p, run, stat, nothing, p->call->c, 0.0f);
}

/* t is dropped. */
static inline struct tensor centre_channels(struct program *p, struct tensor t, struct tensor mean) {
    const struct tensor centred = then(p, is_nchw(p->call) ? op_sub_row : op_sub_col, t, mean);
    drop(p, mean);
    return centred;
}
static inline struct tensor scale_channels(struct program *p, struct tensor t, struct tensor scale) {
    const bool divide = root_divides(&p->call->formula);
    const step_fn by_row = divide ? op_div_row : op_mul_row, by_col = divide ? op_div_col : op_mul_col;
    const struct tensor scaled = then(p, is_nchw(p->call) ? by_row : by_col, t, scale);
    drop(p, scale);
    return scaled;
}

static inline void batchnorm_recipe(struct program *p) {
    const struct nb_call *call = p->call;
    const bool training = is_training(call), nchw = is_nchw(call);
    if (nchw) p->period = call->c;
    if (training && !nchw) p->partial_bytes = n_blocks(call) * array_length(call) * (int64_t)sizeof(float);
    struct tensor x = widen(p, tensor_x(p)), var;
    struct tensor mean = training ? channel_mean(p, x) : given(p, call->running_mean_in);
    if (training && wants_running_mean(call)) update_running(p, op_running_mean, mean);
    write_mean(p, mean, call->c);
    struct tensor centred = centre_channels(p, x, mean);
    if (training) {
        struct tensor squares = square(p, centred);
        var = channel_mean(p, squares);
        drop(p, squares);
        if (wants_running_var(call)) update_running(p, op_running_var, var);
    } else {
        var = given(p, call->running_var_in);
    }
    struct tensor scale = scale_of(p, var, call->c);
    write_rstd(p, scale, call->c);
    struct tensor y = scale_channels(p, centred, scale);
    y = affine_by(p, y, nchw ? op_mul_row : op_mul_col, nchw ? op_add_row : op_add_col, call->c);
    finish(p, y, call->y, call->y_stride);
}

/* The squares are rounded before they are summed. */
static inline int64_t batchnorm_composed_chain(const struct nb_call *call) {
    return is_training(call) ? sums_chain(call) + 1 : 0;
}
