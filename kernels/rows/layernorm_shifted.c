// SPDX-License-Identifier: Apache-2.0
/* LayerNorm in one sweep over d = x - x_0: E[d^2] - E[d]^2 loses only what x_0 differs from the mean, so that the variance has
 * the error of the one-pass form with rho' = |mean - x_0| / sigma, about 1 unless the first element is an outlier. */
#define ROW_CENTRE true
#include "kernels/rows/row.h"
#include "kernels/shared/moments.h"

static __attribute__((noinline)) struct row_stats stats(const struct nb_call *call, int64_t row) {
    const elem *x = row_in(call->x, call->x_stride, row);
    const float n = (float)call->cols;
    float shift = elem_get(x);
    struct moments d = moments_about(x, call->cols, shift);
    float mean = d.sum / n;
    float variance = d.squares / n - mean * mean;
    return (struct row_stats){.mean = shift + mean, .scale = row_scale(variance, call)};
}

NB_KERNEL(layernorm_shifted, .summary = "LayerNorm, one sweep over x - x_0", .op = NB_OP_LAYERNORM,
          .variance = NB_VAR_SHIFTED, .loads = 2, .stores = 1, .flops = 8, .run = row_run, .chain = moments_chain,
          .range = corrected_range, ROW_KERNEL);
