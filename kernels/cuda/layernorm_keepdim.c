// SPDX-License-Identifier: Apache-2.0
/* LayerNorm on a GPU with its statistics as a [rows, 1] tensor: two launches, and x is read twice. Errors as layernorm_row. */
#include "kernels/cuda/stored.h"

STORED_KERNEL(layernorm_keepdim, true, false, .summary = "LayerNorm, statistics as a [rows, 1] tensor, in two launches",
              .op = NB_OP_LAYERNORM, .variance = NB_VAR_TWOPASS, .loads = 2, .stores = 1, .flops = 8,
              .range = mean_range);
