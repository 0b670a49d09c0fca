// SPDX-License-Identifier: Apache-2.0
/* The copy for a forward norm: x is loaded and y stored, once each. Non-temporal stores, no arithmetic. */
#define COPY_FORM .loads = 1, .stores = 1, .flags = NB_FLAG_STREAMING
#include "kernels/copies/baseline_copy.h"

NB_KERNEL(copy_stream, .summary = "x -> y, streaming stores", .op = NB_OP_COPY, COPY_KERNEL);
