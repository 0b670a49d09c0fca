// SPDX-License-Identifier: Apache-2.0
/* pRMSNorm backward: the statistics saw the first k columns, so dx = rstd * (g - xhat * sum(g * xhat) / k) there, the sum over the whole
 * row, and rstd * g behind them (Zhang & Sennrich 2019, section 4); otherwise as rmsnorm_backward_fast. */
#define GRADIENT_LEADING true
#include "kernels/backward/gradient.h"

NB_KERNEL(prmsnorm_backward_fast, .summary = "pRMSNorm backward, one sweep, sums of columns in blocks of rows",
          .op = NB_OP_PRMSNORM, .pass = NB_BACKWARD, .flags = NB_FLAG_STREAMS_BEYOND, .flops = 10,
          .applicable = prefix_applicable, GRADIENT_KERNEL);
