// SPDX-License-Identifier: Apache-2.0
/* pRMSNorm (Zhang & Sennrich 2019, section 4) as rmsnorm_fast, with statistics of the
 * first k elements; error as rmsnorm_fast with k for n. */
#define FAST_PARTIAL true
#include "kernels/rows/fast_rows.h"

/* loads and flops for k = n; less for a smaller k. */
NB_KERNEL(prmsnorm_fast, .summary = "pRMSNorm, a row stored while a later one is summed", .op = NB_OP_PRMSNORM,
          .flops = 4, .applicable = prefix_applicable, FAST_KERNEL);
