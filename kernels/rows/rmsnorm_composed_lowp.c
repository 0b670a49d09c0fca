// SPDX-License-Identifier: Apache-2.0
/* RMSNorm, unfused, without a cast: every tensor is rounded to x's dtype, as x.pow(2).mean(-1, keepdim) of a half tensor is.
 * The mean itself is summed in f32 and rounded once. In f16 squares overflow from |x| = 256 and an eps below 2^-25 is 0;
 * in bf16 the mean square keeps 8 bits. The two cast orders are one here. */
#define COMPOSED_LOWP true
#include "kernels/shared/composed_norm.h"

static void build(struct program *p) { scale_by_squares(p, tensor_x(p), p->call->cols, (float)p->call->cols); }

NB_KERNEL(rmsnorm_composed_lowp, .summary = "unfused RMSNorm, every tensor rounded to the dtype of x",
          .op = NB_OP_RMSNORM, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .stats_dtype = NB_STATS_X, .loads = 4,
          .stores = 3, .flops = 4, .chain = composed_chain, COMPOSED_NORM);
