// SPDX-License-Identifier: Apache-2.0
/* The copy for a backward pass: x and dy are loaded, dx is stored, once each. No arithmetic. */
#define COPY_FORM .loads = 2, .stores = 1
#define COPY_DETAILS .backward = true
#include "kernels/copies/baseline_copy.h"

NB_KERNEL(copy_backward, .summary = "x, dy -> dx", .op = NB_OP_COPY, .pass = NB_BACKWARD, COPY_KERNEL);
