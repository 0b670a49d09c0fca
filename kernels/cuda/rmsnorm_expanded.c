// SPDX-License-Identifier: Apache-2.0
/* RMSNorm on a GPU with its statistics at the size of x: two launches, and x is read twice. Errors as rmsnorm_row. */
#include "kernels/cuda/stored.h"

STORED_KERNEL(rmsnorm_expanded, false, true, .summary = "RMSNorm, statistics at the size of x, in two launches",
              .op = NB_OP_RMSNORM, .loads = 2 + 1 * 4.0f / sizeof(elem), .stores = 1 + 1 * 4.0f / sizeof(elem),
              .flops = 4, .range = square_range);
