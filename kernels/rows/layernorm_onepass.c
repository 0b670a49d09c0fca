// SPDX-License-Identifier: Apache-2.0
/* LayerNorm with the variance as E[x^2] - mean^2, both sums in one sweep and nothing clamped: what many libraries ship for
 * its speed. Relative error of the variance: up to (3 h + 4) u (1 + rho^2), rho = |mean| / sigma, h = chain; the difference
 * can be negative and the result NaN, from rho of about 1000 on for sure. */
#define ROW_CENTRE true
#include "kernels/rows/row.h"
#include "kernels/shared/moments.h"

static __attribute__((noinline)) struct row_stats stats(const struct nb_call *call, int64_t row) {
    const elem *x = row_in(call->x, call->x_stride, row);
    const float n = (float)call->cols;
    struct moments m = moments_about(x, call->cols, 0.0f);
    float mean = m.sum / n;
    float variance = m.squares / n - mean * mean;
    return (struct row_stats){.mean = mean, .scale = row_scale(variance, call)};
}

static int64_t layernorm_onepass_chain(const struct nb_call *call) {
    return reduction_chain(call->cols, MOMENT_ACCUMULATORS);
}

NB_KERNEL(layernorm_onepass, .summary = "LayerNorm, E[x^2] - mean^2 in one sweep", .op = NB_OP_LAYERNORM,
          .variance = NB_VAR_ONEPASS, .loads = 2, .stores = 1, .flops = 7, .run = row_run,
          .chain = layernorm_onepass_chain, .range = one_pass_range, ROW_KERNEL);
