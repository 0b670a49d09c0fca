// SPDX-License-Identifier: Apache-2.0
/* The kernels' vocabulary at width 256. */
#if defined(__x86_64__)
#define NB_SIMD_HEADER "kernels/simd/256.h"
#define NB_SIMD_TARGET NB_TARGET_V3
#define NB_SIMD_TABLE nb_simd_256
#define NB_SIMD_NAME "256"
#include "src/lab/roots/simd_template.h"
#endif
