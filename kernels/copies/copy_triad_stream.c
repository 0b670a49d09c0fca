// SPDX-License-Identifier: Apache-2.0
/* The copy for two loads and a store, such as a residual add: x and residual are loaded, y = x | residual
 * stored. Non-temporal stores, no arithmetic. */
#define COPY_FORM .loads = 2, .stores = 1, .flags = NB_FLAG_STREAMING
#include "kernels/copies/baseline_copy.h"

NB_KERNEL(copy_triad_stream, .summary = "x, residual -> y, streaming stores", .op = NB_OP_COPY, COPY_KERNEL);
