// SPDX-License-Identifier: Apache-2.0
/* RMSNorm as fast as this vocabulary goes (fast_rows.h says how). Relative error of the mean square as rmsnorm_twopass; rows from 16384
 * elements on are summed in 16 segments, which shortens the chain. */
#include "kernels/rows/fast_rows.h"

NB_KERNEL(rmsnorm_fast, .summary = "RMSNorm, a row stored while a later one is summed", .op = NB_OP_RMSNORM, .flops = 4,
          FAST_KERNEL);
