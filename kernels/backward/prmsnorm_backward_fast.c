// SPDX-License-Identifier: Apache-2.0
/* pRMSNorm backward: the statistics saw the first k columns, so dx = rstd * (g - xhat * sum(g * xhat) / k) there, the sum over the whole
 * row, and rstd * g behind them (Zhang & Sennrich 2019, section 4); otherwise as rmsnorm_backward_fast. */
#include "kernels/backward/gradient.h"

static struct gradient_form gradient_form_of_kernel(void) { return (struct gradient_form){.leading = true}; }

static const char *prmsnorm_backward_fast_applicable(const struct nb_call *call) {
    return call->k >= 1 && call->k <= call->cols ? NULL : "k must be from 1 to the row's length";
}

/* Loads: x and dy, twice. */
NB_KERNEL(prmsnorm_backward_fast, .summary = "pRMSNorm backward, one sweep, sums of columns in blocks of rows",
          .op = NB_OP_PRMSNORM, .pass = NB_BACKWARD, .formulas = GRADIENT_FORMULAS, .loads = 4, .stores = 1,
          .flops = 10, .run = gradient_run, .applicable = prmsnorm_backward_fast_applicable,
          .row_local = gradient_row_local, .chain = gradient_chain, .scratch_bytes = gradient_scratch,
          .n_phases = gradient_phases, .n_units = gradient_units, .range = gradient_range,
          .column_chain = gradient_column_chain);
