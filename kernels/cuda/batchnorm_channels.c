// SPDX-License-Identifier: Apache-2.0
/* BatchNorm on a GPU, the mean first, then the squares about it; in inference the running statistics. Errors as batchnorm_twopass. */
#include "kernels/cuda/batchnorm.h"

static int batchnorm_channels_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct channel_args a = channel_args_of(call);
    if (is_training(call) && wants_running_mean(call)) {
        a.running_mean_in = call->running_mean_in;
        a.running_mean_out = call->running_mean_out;
    }
    if (is_training(call) && wants_running_var(call)) {
        a.running_var_in = call->running_var_in;
        a.running_var_out = call->running_var_out;
    }
    a.y = call->y;
    a.y_stride = call->y_stride;
    if (is_training(call) && is_nchw(call)) return launch_planes(call, &a, "_train");
    a.given_mean = call->running_mean_in;
    a.var = call->running_var_in;
    a.scale = channels_in_scratch(call, SCALES);
    int code = 0;
    if (is_training(call)) {
        const float n = (float)values_per_channel(call);
        float *const mean = channels_in_scratch(call, MEANS);
        code = sum_channels(call, (struct column_args){0}, mean, NULL, n);
        if (!code) code = sum_channels(call, (struct column_args){.shift = mean}, a.scale, NULL, n);
        a.given_mean = mean;
        a.var = a.scale;
    }
    if (!code) code = launch_channels(call, &a, "batchnorm_stats");
    return code ? code : apply_channels(call, &a, a.given_mean, a.scale, "_stats");
}

static int batchnorm_channels_row_local(const struct nb_call *call) { return !is_training(call); }
static int64_t batchnorm_channels_chain(const struct nb_call *call) {
    return is_training(call) ? channel_chain(call) : 0;
}

NB_KERNEL(batchnorm_channels,
          .summary = "BatchNorm, a channel a block or a cluster (NCHW), or sums over columns (NHWC)",
          .op = NB_OP_BATCHNORM, .variance = NB_VAR_TWOPASS, .formulas = {NB_EVERY_FORMULA}, .loads = 3, .stores = 1,
          .flops = 8, .run = batchnorm_channels_run, .applicable = batchnorm_row_applicable,
          .row_local = batchnorm_channels_row_local, .chain = batchnorm_channels_chain,
          .scratch_bytes = channels_scratch, .n_units = one_unit, .range = mean_range);
