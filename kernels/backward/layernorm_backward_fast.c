// SPDX-License-Identifier: Apache-2.0
/* LayerNorm backward: dx = rstd * (g - mean(g) - xhat * mean(g * xhat)), dgamma and dbeta the sums of dy * xhat and dy over the rows, in
 * one sweep over the rows: each is reduced once and finished from the cache, three tensor transfers in all. Bounds in gradient_rows.h
 * and gradient_plan.h. */
#define GRADIENT_CENTRE true
#include "kernels/backward/gradient.h"

NB_KERNEL(layernorm_backward_fast, .summary = "LayerNorm backward, one sweep, sums of columns in blocks of rows",
          .op = NB_OP_LAYERNORM, .pass = NB_BACKWARD, .flops = 14, GRADIENT_KERNEL, GRADIENT_NATIVE);
