// SPDX-License-Identifier: Apache-2.0
/* LayerNorm on a GPU with its statistics at the size of x: two launches, and x is read twice. Errors as layernorm_row. */
#include "kernels/cuda/stored.h"

STORED_KERNEL(layernorm_expanded, true, true, .summary = "LayerNorm, statistics at the size of x, in two launches",
              .op = NB_OP_LAYERNORM, .variance = NB_VAR_TWOPASS, .loads = 2 + 2 * 4.0f / sizeof(elem),
              .stores = 1 + 2 * 4.0f / sizeof(elem), .flops = 8, .range = mean_range);
