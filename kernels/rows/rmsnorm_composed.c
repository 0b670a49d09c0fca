// SPDX-License-Identifier: Apache-2.0
/* RMSNorm, unfused, as an eager framework runs x.float().pow(2).mean(-1, keepdim) and so on: y = x / sqrt(mean(x^2) + eps) *
 * gamma. In f32 with gamma 4 tensor reads and 3 writes where a fused kernel needs one of each. Error of the mean square: at
 * most (chain + 2) * 2^-24, relative. */
#include "kernels/shared/composed_norm.h"

static void build(struct program *p) {
    scale_by_squares(p, widen(p, tensor_x(p)), p->call->cols, (float)p->call->cols);
}

/* Loads: square, mean, scale, gamma. Stores: the same without the mean. */
NB_KERNEL(rmsnorm_composed, .summary = "unfused RMSNorm with temporaries, as an eager framework", .op = NB_OP_RMSNORM,
          .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .loads = 4 * F32_TENSOR + CAST_LOADS,
          .stores = 3 * F32_TENSOR + CAST_STORES, .flops = 4, .chain = composed_chain, .range = square_range,
          COMPOSED_NORM);
