// SPDX-License-Identifier: Apache-2.0
/* The functions of simd_functions.h for one width. A file for each width (simd_*.c) says which and includes this, since the kernels'
 * headers define the same names at every width:
 *     NB_SIMD_HEADER   the header of kernels/simd/        NB_SIMD_TARGET   what the CPU must have; x86 alone
 *     NB_SIMD_TABLE    the table that is defined          NB_SIMD_NAME     the width's name */
#pragma once

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "src/core/cpu.h"
#include "src/lab/roots/simd_functions.h"

#if defined(__x86_64__) && defined(NB_SIMD_HEADER)
NB_TARGET_BEGIN(NB_SIMD_TARGET)
#endif
#ifdef NB_SIMD_HEADER
#define NB_DTYPE_IS_F32
#define NB_DTYPE_NAME f32
#endif
#include "kernels/shared/root.h"

static void rstd(const float *x, float *r, uint32_t root) {
    const struct nb_call call = {.formula = {.root = root, .eps_place = NB_EPS_INSIDE}};
    for (int i = 0; i < NB_BATCH; i++) r[i] = scale_to_rstd(row_scale(x[i], &call), &call.formula);
}
static void to_f16(const float *x, uint16_t *y) {
    for (int i = 0; i < NB_BATCH; i += NB_LANES) vec_store_f16(y + i, vec_load_f32(x + i));
}
static void to_bf16(const float *x, uint16_t *y) {
    for (int i = 0; i < NB_BATCH; i += NB_LANES) vec_store_bf16(y + i, vec_load_f32(x + i));
}
static void to_f16_single(const float *x, uint16_t *y) {
    for (int i = 0; i < NB_BATCH; i++) y[i] = nb_f32_to_f16(x[i]);
}
static void to_bf16_single(const float *x, uint16_t *y) {
    for (int i = 0; i < NB_BATCH; i++) y[i] = nb_f32_to_bf16(x[i]);
}

#ifdef NB_SIMD_TABLE
const struct nb_simd_functions NB_SIMD_TABLE = {.width = NB_SIMD_NAME,
                                                .needs = NB_CPU_NEEDED,
                                                .rstd = rstd,
                                                .to_f16 = to_f16,
                                                .to_bf16 = to_bf16,
                                                .to_f16_single = to_f16_single,
                                                .to_bf16_single = to_bf16_single};
#endif
#if defined(__x86_64__) && defined(NB_SIMD_HEADER)
NB_TARGET_END
#endif
