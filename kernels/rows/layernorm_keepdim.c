// SPDX-License-Identifier: Apache-2.0
/* LayerNorm, two-pass, with its statistics in [rows, 1] tensors: all rows are read for them before the first is normalized, so
 * that a tensor beyond the cache is read from memory twice. Errors as of layernorm_twopass. */
#include "kernels/rows/stored_stats.h"

static int layernorm_keepdim_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    if (phase == 1) return norm_rows(call, begin, end, stored_stats, true);
    store_row_stats(call, begin, end, stats_about_mean);
    return 0;
}

NB_KERNEL(layernorm_keepdim, .summary = "LayerNorm, statistics as [rows, 1] tensors, then broadcast",
          .op = NB_OP_LAYERNORM, .stats = NB_STATS_KEEPDIM, .variance = NB_VAR_TWOPASS, .formulas = {NB_EVERY_FORMULA},
          .loads = 3, .stores = 1, .flops = 8, .run = layernorm_keepdim_run, .n_phases = keepdim_phases,
          .scratch_bytes = keepdim_scratch, .chain = row_chain, .range = mean_range);
