// SPDX-License-Identifier: Apache-2.0
/* The kernels' vocabulary with one lane, and the list of all widths. */
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "src/core/cpu.h"

#define NB_SIMD_HEADER "kernels/simd/scalar.h"
#if defined(__x86_64__)
NB_TARGET_BEGIN(NB_TARGET_V3)
#include "src/lab/exhaustive/simd_template.h"
const struct nb_simd_functions nb_simd_scalar = NB_SIMD_FUNCTIONS("scalar");
NB_TARGET_END
const struct nb_simd_functions *const nb_simd_functions[] = {&nb_simd_scalar, &nb_simd_128, &nb_simd_256, &nb_simd_512};
#else
const struct nb_simd_functions nb_simd_scalar = NB_SIMD_FUNCTIONS("scalar");
const struct nb_simd_functions *const nb_simd_functions[] = {&nb_simd_scalar};
#endif
const size_t nb_n_simd_functions = sizeof nb_simd_functions / sizeof nb_simd_functions[0];
