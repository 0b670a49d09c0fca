// SPDX-License-Identifier: Apache-2.0
/* The copy for a forward norm: x is loaded and y stored, once each. x is prefetched, stores are non-temporal. No arithmetic. */
#define COPY_FORM .loads = 1, .stores = 1, .flags = NB_FLAG_STREAMING
#define COPY_DETAILS .prefetch = true
#include "kernels/copies/baseline_copy.h"

NB_KERNEL(copy_stream_prefetch, .summary = "x -> y, prefetch and streaming stores", .op = NB_OP_COPY, COPY_KERNEL);
