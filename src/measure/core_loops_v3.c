// SPDX-License-Identifier: Apache-2.0
/* AVX2, FMA, F16C. Results go nowhere: an empty asm statement takes each, so that no compiler leaves the work out. */
#include "src/measure/core_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/kernel.h"
#include "src/core/cpu.h"

NB_TARGET_BEGIN(NB_TARGET_V3)

enum { SUMS = 12, LANES = 8 }; /* 4 cycles of latency on two ports are 8 in flight; 16 registers hold 12 */

static int64_t fma_256(unsigned char *buffer, int64_t rounds) {
    (void)buffer;
    const __m256 half = _mm256_set1_ps(0.5f);
    __m256 sums[SUMS];
    for (int i = 0; i < SUMS; i++) sums[i] = half;
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++) sums[i] = _mm256_fmadd_ps(sums[i], half, half);
    for (int i = 0; i < SUMS; i++) __asm__ volatile("" ::"x"(sums[i]));
    return rounds * SUMS * LANES;
}

static int64_t widen_f16(unsigned char *buffer, int64_t rounds) {
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < NB_CORE_BUFFER; at += 16)
            __asm__ volatile("" ::"x"(_mm256_cvtph_ps(_mm_load_si128((const __m128i *)(buffer + at)))));
    return rounds * NB_CORE_BUFFER / 2;
}

static int64_t widen_bf16(unsigned char *buffer, int64_t rounds) {
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < NB_CORE_BUFFER; at += 16)
            __asm__ volatile(
                "" ::"x"(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_load_si128((const __m128i *)(buffer + at))), 16)));
    return rounds * NB_CORE_BUFFER / 2;
}

/* Odd and even elements apart: half the loads, and no shuffle. */
static int64_t widen_bf16_pairs(unsigned char *buffer, int64_t rounds) {
    const __m256i odd = _mm256_set1_epi32((int)0xffff0000);
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < NB_CORE_BUFFER; at += 32) {
            const __m256i both = _mm256_load_si256((const __m256i *)(buffer + at));
            __asm__ volatile("" ::"x"(_mm256_and_si256(both, odd)), "x"(_mm256_slli_epi32(both, 16)));
        }
    return rounds * NB_CORE_BUFFER / 2;
}

static int64_t narrow_f16(unsigned char *buffer, int64_t rounds) {
    __m256 value = _mm256_set1_ps(1.25f);
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < NB_CORE_BUFFER; at += 16) {
            __asm__ volatile("" : "+x"(value));
            _mm_store_si128((__m128i *)(buffer + at), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
        }
    return rounds * NB_CORE_BUFFER / 2;
}

static inline __m256i rounded(__m256i bits) {
    const __m256i lowest = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), lowest);
}

static int64_t narrow_bf16_pairs(unsigned char *buffer, int64_t rounds) {
    __m256i odd = _mm256_set1_epi32(0x3fa00000), even = odd;
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < NB_CORE_BUFFER; at += 32) {
            __asm__ volatile("" : "+x"(odd), "+x"(even));
            const __m256i low = _mm256_srli_epi32(rounded(even), 16);
            _mm256_store_si256((__m256i *)(buffer + at), _mm256_blend_epi16(low, rounded(odd), 0xaa));
        }
    return rounds * NB_CORE_BUFFER / 2;
}

NB_TARGET_END

const struct nb_core_loop nb_core_loops_v3[] = {
    {NB_WORK_FMA, NB_CPU_AVX2, NB_256, fma_256},
    {NB_WORK_WIDEN_F16, NB_CPU_AVX2, NB_256, widen_f16},
    {NB_WORK_WIDEN_BF16, NB_CPU_AVX2, NB_256, widen_bf16},
    {NB_WORK_WIDEN_BF16, NB_CPU_AVX2, NB_256, widen_bf16_pairs},
    {NB_WORK_NARROW_F16, NB_CPU_AVX2, NB_256, narrow_f16},
    {NB_WORK_NARROW_BF16, NB_CPU_AVX2, NB_256, narrow_bf16_pairs},
};
const size_t nb_n_core_loops_v3 = sizeof nb_core_loops_v3 / sizeof nb_core_loops_v3[0];
#else
const struct nb_core_loop nb_core_loops_v3[] = {{0}};
const size_t nb_n_core_loops_v3 = 0;
#endif
