// SPDX-License-Identifier: Apache-2.0
/* LayerNorm in one pass of sums about a shift near the mean, with a second where the shift was bad, then the output (fast_rows.h says
 * how rows overlap, fast_stats.h what the shift is and costs: the variance may be off by 2.62 times what two passes would be, which is why
 * chain is that much longer than the sums are). The mean is off by u |mean| and by what the sums about the shift are, which in rows
 * with an offset is far less than a sum of the elements themselves. Rows about 0 have the shift 0, and their mean folded into the output
 * (fast_output.h), which costs half a u of the normalized value; flops are those of other rows, two fewer there. */
#define FAST_CENTRE true
#include "kernels/rows/fast_rows.h"

NB_KERNEL(layernorm_fast, .summary = "LayerNorm, sums about a guarded shift, a row stored while a later one is summed",
          .op = NB_OP_LAYERNORM, .variance = NB_VAR_SHIFTED, .flops = 9, FAST_KERNEL);
