// SPDX-License-Identifier: Apache-2.0
/* L2 normalization as rmsnorm_fast, with the sum of squares instead of their mean: f32 overflows from rms(x) = 1.8e19 / sqrt(n). */
#define FAST_TOTAL true
#include "kernels/rows/fast_rows.h"

NB_KERNEL(l2norm_fast, .summary = "L2 normalization, a row stored while a later one is summed", .op = NB_OP_L2NORM,
          .flops = 4, FAST_KERNEL);
