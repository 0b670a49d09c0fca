// SPDX-License-Identifier: Apache-2.0
/* The copy for a backward pass through a residual add and a norm: x, dy and dresidual_out
 * are loaded, dx is stored, once each. No arithmetic. */
#define COPY_FORM .loads = 3, .stores = 1
#define COPY_DETAILS .backward = true
#include "kernels/copies/baseline_copy.h"

NB_KERNEL(copy_add_backward, .summary = "x, dy, dresidual_out -> dx", .op = NB_OP_COPY, .pass = NB_BACKWARD,
          COPY_KERNEL);
