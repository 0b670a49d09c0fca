// SPDX-License-Identifier: Apache-2.0
/* The kernels' vocabulary at width 128. */
#if defined(__x86_64__)
#define NB_SIMD_HEADER "kernels/simd/128.h"
#define NB_SIMD_TARGET NB_TARGET_V3
#define NB_SIMD_TABLE nb_simd_128
#define NB_SIMD_NAME "128"
#include "src/lab/roots/simd_template.h"
#elif defined(__aarch64__)
#define NB_SIMD_HEADER "kernels/simd/neon128.h"
#define NB_SIMD_TABLE nb_simd_128
#define NB_SIMD_NAME "128"
#include "src/lab/roots/simd_template.h"
#endif
