// SPDX-License-Identifier: Apache-2.0
/* The copy for a residual add with a norm: two loads and two stores, y = x and residual_out = residual. No arithmetic. */
#define COPY_FORM .loads = 2, .stores = 2
#include "kernels/copies/baseline_copy.h"

NB_KERNEL(copy_add, .summary = "x, residual -> y, residual_out", .op = NB_OP_COPY, COPY_KERNEL);
