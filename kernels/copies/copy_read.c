// SPDX-License-Identifier: Apache-2.0
/* The copy for anything that only reads a tensor: x is loaded once. No arithmetic. */
#define COPY_FORM .loads = 1, .stores = 0
#include "kernels/copies/baseline_copy.h"

NB_KERNEL(copy_read, .summary = "reads x", .op = NB_OP_COPY, COPY_KERNEL);
