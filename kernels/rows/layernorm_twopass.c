// SPDX-License-Identifier: Apache-2.0
/* LayerNorm, the mean first, then the mean of (x - mean)^2, then the output: three sweeps. The reference of its op.
 * With rho = |mean| / sigma and h = chain: the mean is off by up to (h + 1) u mean|x|, which enters y linearly (h u rho) and
 * the variance squared; the variance has (h + 3) u of its own, all terms being positive. */
#include "kernels/rows/row.h"

static int layernorm_twopass_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return norm_rows(call, begin, end, stats_about_mean, true);
}

NB_KERNEL(layernorm_twopass, .summary = "LayerNorm, mean, then variance about it, then scale", .op = NB_OP_LAYERNORM,
          .variance = NB_VAR_TWOPASS, .loads = 3, .stores = 1, .flops = 8, .run = layernorm_twopass_run,
          .chain = row_chain, .range = mean_range, ROW_KERNEL);
