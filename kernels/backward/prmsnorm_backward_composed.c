// SPDX-License-Identifier: Apache-2.0
/* pRMSNorm backward op by op (composed_backward.h): the statistics saw the first k columns (Zhang & Sennrich 2019, section 4), so a copy
 * of g = dy * w, from a slice of which xhat * sum(g * xhat) / k is taken, is scaled by rstd. */
#include "kernels/backward/composed_backward.h"

static void build(struct program *p) { gradient_recipe(p, false, p->call->k); }
static const char *prmsnorm_backward_composed_applicable(const struct nb_call *call) {
    return call->k >= 1 && call->k <= call->cols ? NULL : "k must be from 1 to the row's length";
}

/* Loads, stores and flops for k = n. */
NB_KERNEL(prmsnorm_backward_composed, .summary = "pRMSNorm backward op by op with temporaries, as an eager framework",
          .op = NB_OP_PRMSNORM, .pass = NB_BACKWARD, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM,
          .formulas = COMPOSED_GRADIENT_FORMULAS, .loads = (GRADIENT_LOADS)*F32_TENSOR + GRADIENT_CAST_LOADS,
          .stores = (GRADIENT_STORES)*F32_TENSOR + GRADIENT_CAST_STORES, .flops = 10, .run = composed_run,
          .applicable = prmsnorm_backward_composed_applicable, .n_phases = composed_phases, .n_units = composed_units,
          .scratch_bytes = composed_gradient_scratch, .chain = composed_chain, .column_chain = composed_column_chain);
