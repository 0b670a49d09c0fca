// SPDX-License-Identifier: Apache-2.0
/* L2 normalization, unfused: y = x / sqrt(sum(x^2) + eps) * gamma; with eps as a clamp it is torch.nn.functional.normalize.
 * Error of the sum of squares: at most (chain + 1) * 2^-24, relative. */
#include "kernels/shared/composed_norm.h"

static void build(struct program *p) { scale_by_squares(p, widen(p, tensor_x(p)), p->call->cols, 1.0f); }

/* Loads: square, sum, scale, gamma. Stores: the same without the sum. */
NB_KERNEL(l2norm_composed, .summary = "unfused L2 norm with temporaries, as an eager framework", .op = NB_OP_L2NORM,
          .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .loads = 4 * F32_TENSOR + CAST_LOADS,
          .stores = 3 * F32_TENSOR + CAST_STORES, .flops = 4, .chain = composed_chain, .range = square_range,
          COMPOSED_NORM);
