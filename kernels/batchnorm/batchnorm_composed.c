// SPDX-License-Identifier: Apache-2.0
/* BatchNorm, unfused, two-pass, as an eager framework without a BatchNorm of its own. In f32 with gamma and beta 7 tensor reads
 * and 5 writes in training, 4 and 4 in inference. Error of the variance: at most (chain + 4) u, u = 2^-24, relative, and that
 * of the mean squared. */
#include "kernels/batchnorm/composed_batchnorm.h"

static void build(struct program *p) { batchnorm_recipe(p); }

/* In training, as layernorm_composed. */
NB_KERNEL(batchnorm_composed, .summary = "unfused BatchNorm with temporaries, as an eager framework",
          .op = NB_OP_BATCHNORM, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .variance = NB_VAR_TWOPASS,
          .loads = 7 * F32_TENSOR + CAST_LOADS, .stores = 5 * F32_TENSOR + CAST_STORES, .flops = 7,
          .applicable = batchnorm_applicable, .chain = batchnorm_composed_chain, .range = mean_range, COMPOSED_NORM);
