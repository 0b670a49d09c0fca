// SPDX-License-Identifier: Apache-2.0
/* The copy for a residual add with a norm: two loads and two stores, y = x and residual_out
 * = residual. Non-temporal stores, no arithmetic. */
#define COPY_FORM .loads = 2, .stores = 2, .flags = NB_FLAG_STREAMING
#include "kernels/copies/baseline_copy.h"

NB_KERNEL(copy_add_stream, .summary = "x, residual -> y, residual_out, streaming stores", .op = NB_OP_COPY,
          COPY_KERNEL);
