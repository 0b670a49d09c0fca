// SPDX-License-Identifier: Apache-2.0
/* AVX-512, and its bf16 conversion where the CPU has it. */
#include "src/measure/core_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/kernel.h"
#include "src/core/cpu.h"

NB_TARGET_BEGIN(NB_TARGET_V4)

enum { SUMS = 16, LANES = 16 };

static int64_t fma_512(unsigned char *buffer, int64_t rounds) {
    (void)buffer;
    const __m512 half = _mm512_set1_ps(0.5f);
    __m512 sums[SUMS];
    for (int i = 0; i < SUMS; i++) sums[i] = half;
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 16
        for (int i = 0; i < SUMS; i++) sums[i] = _mm512_fmadd_ps(sums[i], half, half);
    for (int i = 0; i < SUMS; i++) __asm__ volatile("" ::"v"(sums[i]));
    return rounds * SUMS * LANES;
}

static int64_t widen_f16(unsigned char *buffer, int64_t rounds) {
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < NB_CORE_BUFFER; at += 32)
            __asm__ volatile("" ::"v"(_mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(buffer + at)))));
    return rounds * NB_CORE_BUFFER / 2;
}

static int64_t widen_bf16_pairs(unsigned char *buffer, int64_t rounds) {
    const __m512i odd = _mm512_set1_epi32((int)0xffff0000);
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < NB_CORE_BUFFER; at += 64) {
            const __m512i both = _mm512_load_si512(buffer + at);
            __asm__ volatile("" ::"v"(_mm512_and_si512(both, odd)), "v"(_mm512_slli_epi32(both, 16)));
        }
    return rounds * NB_CORE_BUFFER / 2;
}

static int64_t narrow_f16(unsigned char *buffer, int64_t rounds) {
    __m512 value = _mm512_set1_ps(1.25f);
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < NB_CORE_BUFFER; at += 32) {
            __asm__ volatile("" : "+v"(value));
            _mm256_store_si256((__m256i *)(buffer + at), _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
        }
    return rounds * NB_CORE_BUFFER / 2;
}

static inline __m512i rounded(__m512i bits) {
    const __m512i lowest = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), lowest);
}

static int64_t narrow_bf16_pairs(unsigned char *buffer, int64_t rounds) {
    __m512i odd = _mm512_set1_epi32(0x3fa00000), even = odd;
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < NB_CORE_BUFFER; at += 64) {
            __asm__ volatile("" : "+v"(odd), "+v"(even));
            const __m512i low = _mm512_srli_epi32(rounded(even), 16);
            _mm512_store_si512(buffer + at, _mm512_mask_blend_epi16(0xaaaaaaaau, low, rounded(odd)));
        }
    return rounds * NB_CORE_BUFFER / 2;
}

NB_TARGET_END
NB_TARGET_BEGIN(NB_TARGET_V4 ",avx512bf16")

static int64_t narrow_bf16_native(unsigned char *buffer, int64_t rounds) {
    __m512 odd = _mm512_set1_ps(1.25f), even = odd;
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < NB_CORE_BUFFER; at += 64) {
            __asm__ volatile("" : "+v"(odd), "+v"(even));
            _mm512_store_si512(buffer + at, (__m512i)_mm512_cvtne2ps_pbh(odd, even));
        }
    return rounds * NB_CORE_BUFFER / 2;
}

NB_TARGET_END

const struct nb_core_loop nb_core_loops_v4[] = {
    {NB_WORK_FMA, NB_CPU_AVX512, NB_512, fma_512},
    {NB_WORK_WIDEN_F16, NB_CPU_AVX512, NB_512, widen_f16},
    {NB_WORK_WIDEN_BF16, NB_CPU_AVX512, NB_512, widen_bf16_pairs},
    {NB_WORK_NARROW_F16, NB_CPU_AVX512, NB_512, narrow_f16},
    {NB_WORK_NARROW_BF16, NB_CPU_AVX512, NB_512, narrow_bf16_pairs},
    {NB_WORK_NARROW_BF16, NB_CPU_AVX512 | NB_CPU_AVX512BF16, NB_512, narrow_bf16_native},
};
const size_t nb_n_core_loops_v4 = sizeof nb_core_loops_v4 / sizeof nb_core_loops_v4[0];
#else
const struct nb_core_loop nb_core_loops_v4[] = {{0}};
const size_t nb_n_core_loops_v4 = 0;
#endif
