// SPDX-License-Identifier: Apache-2.0
/* pRMSNorm, unfused: the mean square of the first k elements of a row scales the whole row (Zhang & Sennrich 2019, section
 * 4), the slice being squared into a temporary of its own. Error of the mean square: at most (chain + 2) * 2^-24, relative. */
#include "kernels/shared/composed_norm.h"

static void build(struct program *p) { scale_by_squares(p, widen(p, tensor_x(p)), p->call->k, (float)p->call->k); }

static int64_t prmsnorm_composed_chain(const struct nb_call *call) { return sum_chain(call->k) + 1; }

/* Loads, stores and flops for k = n; less for a smaller k. */
NB_KERNEL(prmsnorm_composed, .summary = "unfused pRMSNorm with temporaries, as an eager framework",
          .op = NB_OP_PRMSNORM, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM, .loads = 4 * F32_TENSOR + CAST_LOADS,
          .stores = 3 * F32_TENSOR + CAST_STORES, .flops = 4, .applicable = prefix_applicable,
          .chain = prmsnorm_composed_chain, .range = square_range, COMPOSED_NORM);
