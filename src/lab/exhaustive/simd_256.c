// SPDX-License-Identifier: Apache-2.0
/* The kernels' vocabulary at width 256. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "src/core/cpu.h"

NB_TARGET_BEGIN(NB_TARGET_V3)
#define NB_SIMD_HEADER "kernels/simd/256.h"
#include "src/lab/exhaustive/simd_template.h"

const struct nb_simd_functions nb_simd_256 = NB_SIMD_FUNCTIONS("256");
NB_TARGET_END
#endif
