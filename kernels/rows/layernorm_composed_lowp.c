// SPDX-License-Identifier: Apache-2.0
/* LayerNorm, unfused, without a cast: every tensor is rounded to x's dtype; the means themselves are summed in f32 and rounded
 * once. In f16 squares overflow from |x - mean| = 256 and an eps below 2^-25 is 0; in bf16 the statistics keep 8 bits. The two
 * cast orders are one here. */
#define COMPOSED_LOWP true
#include "kernels/shared/composed_norm.h"

static void build(struct program *p) { standardise(p, tensor_x(p)); }

NB_KERNEL(layernorm_composed_lowp, .summary = "unfused LayerNorm, every tensor rounded to the dtype of x",
          .op = NB_OP_LAYERNORM, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .stats_dtype = NB_STATS_X,
          .variance = NB_VAR_TWOPASS, .loads = 7, .stores = 5, .flops = 7, .chain = composed_chain, COMPOSED_NORM);
