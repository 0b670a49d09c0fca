// SPDX-License-Identifier: Apache-2.0
/* L2 normalization as rmsnorm_fast, with the sum of squares instead of their mean: f32 overflows from rms(x) = 1.8e19 / sqrt(n). */
#define FAST_TOTAL true
#include "kernels/rows/fast_rows.h"

static int l2norm_fast_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return fast_run(call, phase, begin, end);
}

#define L2_FORMULAS                                                                                                    \
    {                                                                                                                  \
        .roots = NB_BIT(NB_ROOT_MUL_RECIP) | NB_BIT(NB_ROOT_RSQRT_NR) | NB_BIT(NB_ROOT_RSQRT_RAW),                     \
        .eps_places = NB_ALL(NB_N_EPS_PLACES), .affines = NB_BIT(NB_AFFINE_NONE) | NB_BIT(NB_AFFINE_GAMMA)             \
    }

NB_KERNEL(l2norm_fast, .summary = "L2 normalization, a row stored while a later one is summed", .op = NB_OP_L2NORM,
          .formulas = L2_FORMULAS, .loads = 2, .stores = 1, .flops = 4, .run = l2norm_fast_run, FAST_KERNEL);
