// SPDX-License-Identifier: Apache-2.0
/* The copy for a forward norm: x is loaded and y stored, once each. No arithmetic. */
#define COPY_FORM .loads = 1, .stores = 1
#include "kernels/copies/baseline_copy.h"

NB_KERNEL(copy, .summary = "x -> y", .op = NB_OP_COPY, COPY_KERNEL);
