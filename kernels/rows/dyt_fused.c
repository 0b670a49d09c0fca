// SPDX-License-Identifier: Apache-2.0
/* DyT (Zhu et al. 2025): y = gamma tanh(alpha x) + beta, one sweep and no statistics; root and eps mean nothing to it. alpha x
 * is rounded once (u), which tanh passes on at most as it is; with the 2.1 ulp of tanh.h the value before the affine part is
 * within 3.1 ulp. */
#include "kernels/rows/row.h"
#include "kernels/shared/tanh.h"

NB_INLINE vec map_tanh(vec x, vec mean, vec residual, vec alpha, struct row_form f) { return vec_tanh(alpha * x); }

NB_INLINE int dyt_rows(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn stats, struct row_form f) {
    const struct row_stats s = {.scale = (float)call->alpha};
    for (int64_t r = begin; r < end; r++) {
        const elem *x = row_in(call->x, call->x_stride, r);
        finish_row(call, plain_source(x), row_out(call->y, call->y_stride, r), s, 0.0f, f);
    }
    return 0;
}

static int dyt_fused_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return rows_of_form(call, begin, end, NULL, (struct row_form){.map = map_tanh, .affine = NB_AFFINE_GAMMA_BETA},
                        dyt_rows);
}

/* Nothing is reduced: the roundings of alpha x and of tanh. */
static int64_t dyt_fused_chain(const struct nb_call *call) { return 1; }

NB_KERNEL(dyt_fused, .summary = "DyT, gamma * tanh(alpha * x) + beta", .op = NB_OP_DYT, .loads = 1, .stores = 1,
          .flops = 28, .run = dyt_fused_run, .chain = dyt_fused_chain, ROW_KERNEL);
