// SPDX-License-Identifier: Apache-2.0
/* RMSNorm on a GPU with its statistics as a [rows, 1] tensor: two launches, and x is read twice. Errors as rmsnorm_row. */
#include "kernels/cuda/stored.h"

STORED_KERNEL(rmsnorm_keepdim, false, false, .summary = "RMSNorm, statistics as a [rows, 1] tensor, in two launches",
              .op = NB_OP_RMSNORM, .loads = 2, .stores = 1, .flops = 4, .range = square_range);
