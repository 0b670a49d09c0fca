// SPDX-License-Identifier: Apache-2.0
/* The copy for a backward pass: x and dy are loaded, dx is stored, once each. Non-temporal stores, no arithmetic. */
#define COPY_FORM .loads = 2, .stores = 1, .flags = NB_FLAG_STREAMING
#define COPY_DETAILS .backward = true
#include "kernels/copies/baseline_copy.h"

NB_KERNEL(copy_backward_stream, .summary = "x, dy -> dx, streaming stores", .op = NB_OP_COPY, .pass = NB_BACKWARD,
          COPY_KERNEL);
