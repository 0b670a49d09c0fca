// SPDX-License-Identifier: Apache-2.0
/* The kernels' vocabulary with one lane, and the list of all widths. */
#define NB_SIMD_HEADER "kernels/simd/scalar.h"
#define NB_SIMD_TARGET NB_TARGET_V3
#define NB_SIMD_TABLE nb_simd_scalar
#define NB_SIMD_NAME "scalar"
#include "src/lab/roots/simd_template.h"

const struct nb_simd_functions *const nb_simd_functions[] = {
    &nb_simd_scalar,
#if defined(__x86_64__)
    &nb_simd_128,
    &nb_simd_256,
    &nb_simd_512,
#elif defined(__aarch64__)
    &nb_simd_128,
#endif
};
const size_t nb_n_simd_functions = sizeof nb_simd_functions / sizeof nb_simd_functions[0];
