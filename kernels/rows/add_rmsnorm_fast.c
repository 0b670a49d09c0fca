// SPDX-License-Identifier: Apache-2.0
/* Residual add and RMSNorm as rmsnorm_fast: a row's sum is made, stored and summed up while an earlier row is stored. The output reads it
 * from where it was stored, or adds again where it is not wanted, where it must not be rounded, or where it was stored non-temporally.
 * Error as rmsnorm_fast, about the sum that the formula asks for; the f32 sum itself is off by up to u |x + residual|. */
#define FAST_ADD true
#include "kernels/rows/fast_rows.h"

NB_KERNEL(add_rmsnorm_fast, .summary = "residual add and RMSNorm, a row stored while a later one is summed",
          .op = NB_OP_ADD_RMSNORM, .flops = 5, FAST_KERNEL);
