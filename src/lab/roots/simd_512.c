// SPDX-License-Identifier: Apache-2.0
/* The kernels' vocabulary at width 512. */
#if defined(__x86_64__)
#define NB_SIMD_HEADER "kernels/simd/512.h"
#define NB_SIMD_TARGET NB_TARGET_V4
#define NB_SIMD_TABLE nb_simd_512
#define NB_SIMD_NAME "512"
#include "src/lab/roots/simd_template.h"
#endif
