// SPDX-License-Identifier: Apache-2.0
/* Gradients of BatchNorm on a GPU: sums of dy and dy xhat over a channel, then dx = (g - mean g - xhat mean(g xhat)) rstd. */
#include "kernels/cuda/batchnorm.h"

static int batchnorm_backward_channels_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct channel_args a = channel_args_of(call);
    a.dgamma = call->dgamma;
    a.dbeta = call->dbeta;
    a.y = call->dx;
    a.y_stride = call->dx_stride;
    if (is_nchw(call)) return launch_planes(call, &a, "_gradient");
    if (is_training(call)) {
        a.mean_g = channels_in_scratch(call, MEAN_GS);
        a.mean_product = channels_in_scratch(call, MEAN_PRODUCTS);
    }
    int code = 0;
    if (sums_gradients(call)) {
        if (!a.dgamma) a.dgamma = channels_in_scratch(call, DGAMMAS);
        if (!a.dbeta) a.dbeta = channels_in_scratch(call, DBETAS);
        const struct column_args sums = {.dy = call->dy, .shift = call->mean, .rstd = call->rstd};
        code = sum_channels(call, sums, a.dgamma, a.dbeta, 1.0f);
        if (!code && is_training(call)) code = launch_channels(call, &a, "batchnorm_" NB_TEXT(NB_DTYPE_NAME) "_means");
    }
    return code || !call->dx ? code : apply_channels(call, &a, call->mean, call->rstd, "_gradient");
}

NB_KERNEL(batchnorm_backward_channels, .summary = "gradients of BatchNorm: two sums of a channel, then dx",
          .op = NB_OP_BATCHNORM, .pass = NB_BACKWARD, .formulas = {NB_EVERY_GRADIENT}, .loads = 4, .stores = 1,
          .flops = 13, .run = batchnorm_backward_channels_run, .applicable = batchnorm_row_applicable,
          .chain = channel_chain, .column_chain = channel_chain, .scratch_bytes = channels_scratch,
          .n_units = one_unit);
