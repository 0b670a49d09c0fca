// SPDX-License-Identifier: Apache-2.0
/* gate_global_old.c with another factor, and so wrong. */
#define FACTOR 1.001f
#include "gate_global_old.c"
