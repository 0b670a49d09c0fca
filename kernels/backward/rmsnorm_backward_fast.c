// SPDX-License-Identifier: Apache-2.0
/* RMSNorm backward: dx = rstd * (g - xhat * mean(g * xhat)), dgamma = sum of dy * xhat over the rows, in one sweep over the rows: each is
 * reduced once and finished from the cache, three tensor transfers in all. Bounds in gradient_rows.h and gradient_plan.h. */
#include "kernels/backward/gradient.h"

NB_KERNEL(rmsnorm_backward_fast, .summary = "RMSNorm backward, one sweep, sums of columns in blocks of rows",
          .op = NB_OP_RMSNORM, .pass = NB_BACKWARD, .flops = 10, GRADIENT_KERNEL, GRADIENT_NATIVE);
