// SPDX-License-Identifier: Apache-2.0
/* BatchNorm, unfused, without a cast: every tensor is rounded to x's dtype; the means themselves are summed in f32 and rounded
 * once, and running statistics stay f32. In f16 squares overflow from |x - mean| = 256 and an eps below 2^-25 is 0; in bf16 the
 * statistics keep 8 bits. The two cast orders are one here. */
#define COMPOSED_LOWP true
#include "kernels/batchnorm/composed_batchnorm.h"

static void build(struct program *p) { batchnorm_recipe(p); }

/* In training. */
NB_KERNEL(batchnorm_composed_lowp, .summary = "unfused BatchNorm, every tensor rounded to the dtype of x",
          .op = NB_OP_BATCHNORM, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .stats_dtype = NB_STATS_X,
          .variance = NB_VAR_TWOPASS, .loads = 7, .stores = 5, .flops = 7, .applicable = batchnorm_applicable,
          .chain = batchnorm_composed_chain, COMPOSED_NORM);
