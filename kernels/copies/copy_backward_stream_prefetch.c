// SPDX-License-Identifier: Apache-2.0
/* The copy for a backward pass: x and dy are loaded, dx is stored, once each. Loads are
 * prefetched, stores are non-temporal. No arithmetic. */
#define COPY_FORM .loads = 2, .stores = 1, .flags = NB_FLAG_STREAMING
#define COPY_DETAILS .backward = true, .prefetch = true
#include "kernels/copies/baseline_copy.h"

NB_KERNEL(copy_backward_stream_prefetch, .summary = "x, dy -> dx, prefetch and streaming stores", .op = NB_OP_COPY,
          .pass = NB_BACKWARD, COPY_KERNEL);
