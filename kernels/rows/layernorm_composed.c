// SPDX-License-Identifier: Apache-2.0
/* LayerNorm, unfused, two-pass: mean, x - mean, square, mean, + eps, root, scale, * gamma, + beta. In f32 with gamma and beta
 * 7 tensor reads and 5 writes where a fused kernel needs one of each. Error of the variance: at most (chain + 4) * 2^-24,
 * relative, and that of the mean squared. */
#include "kernels/shared/composed_norm.h"

static void build(struct program *p) { standardise(p, widen(p, tensor_x(p))); }

/* Loads: mean, centre, square, mean, scale, gamma, beta. Stores: the same without the means. */
NB_KERNEL(layernorm_composed, .summary = "unfused LayerNorm with temporaries, as an eager framework",
          .op = NB_OP_LAYERNORM, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .variance = NB_VAR_TWOPASS,
          .loads = 7 * F32_TENSOR + CAST_LOADS, .stores = 5 * F32_TENSOR + CAST_STORES, .flops = 7,
          .chain = composed_chain, .range = mean_range, COMPOSED_NORM);
