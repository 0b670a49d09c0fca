// SPDX-License-Identifier: Apache-2.0
/* The loops behind launch_job.c for vectors of LOOP_WIDTH bits: a part of launch_job.c, which includes it once for each width. Results go
 * nowhere: an empty asm statement takes each, so that no compiler leaves the work out. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

#ifndef LOOP_WIDTH
#define LOOP_WIDTH 256 /* for whoever reads it alone */
enum { LOOP_BUFFER = 4096 };
#endif

#if LOOP_WIDTH == 256
#define LOOP(name) name##_256
#define OP(name) _mm256_##name
#define AND(a, b) _mm256_and_si256(a, b)
#define LOAD(from) _mm256_load_si256((const __m256i *)(from))
#define STORE(to, v) _mm256_store_si256((__m256i *)(to), v)
#define LOAD_HALF(from) _mm_load_si128((const __m128i *)(from))
#define STORE_HALF(to, v) _mm_store_si128((__m128i *)(to), v)
#define TAKE_ODD(even, odd) _mm256_blend_epi16(even, odd, 0xaa)
#define FLOATS __m256
#define INTS __m256i
#define SUMS 12 /* 4 cycles of latency on two ports are 8 in flight; 16 registers hold 12 */
#else
#define LOOP(name) name##_512
#define OP(name) _mm512_##name
#define AND(a, b) _mm512_and_si512(a, b)
#define LOAD(from) _mm512_load_si512(from)
#define STORE(to, v) _mm512_store_si512(to, v)
#define LOAD_HALF(from) _mm256_load_si256((const __m256i *)(from))
#define STORE_HALF(to, v) _mm256_store_si256((__m256i *)(to), v)
#define TAKE_ODD(even, odd) _mm512_mask_blend_epi16(0xaaaaaaaau, even, odd)
#define FLOATS __m512
#define INTS __m512i
#define SUMS 16
#endif
enum { LOOP(bytes) = LOOP_WIDTH / 8 };

static int64_t LOOP(fma)(unsigned char *buffer, int64_t rounds) {
    const FLOATS half = OP(set1_ps)(0.5f);
    FLOATS sums[SUMS];
    for (int i = 0; i < SUMS; i++) sums[i] = half;
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 16
        for (int i = 0; i < SUMS; i++) sums[i] = OP(fmadd_ps)(sums[i], half, half);
    for (int i = 0; i < SUMS; i++) __asm__ volatile("" ::"v"(sums[i]));
    return rounds * SUMS * (LOOP_WIDTH / 32);
}

static int64_t LOOP(widen_f16)(unsigned char *buffer, int64_t rounds) {
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < LOOP_BUFFER; at += LOOP(bytes) / 2)
            __asm__ volatile("" ::"v"(OP(cvtph_ps)(LOAD_HALF(buffer + at))));
    return rounds * LOOP_BUFFER / 2;
}

#if LOOP_WIDTH == 256
static int64_t LOOP(widen_bf16)(unsigned char *buffer, int64_t rounds) {
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < LOOP_BUFFER; at += LOOP(bytes) / 2)
            __asm__ volatile("" ::"v"(OP(slli_epi32)(OP(cvtepu16_epi32)(LOAD_HALF(buffer + at)), 16)));
    return rounds * LOOP_BUFFER / 2;
}
#endif

/* Odd and even elements apart: half the loads, and no shuffle. */
static int64_t LOOP(widen_bf16_pairs)(unsigned char *buffer, int64_t rounds) {
    const INTS odd = OP(set1_epi32)((int)0xffff0000);
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < LOOP_BUFFER; at += LOOP(bytes)) {
            const INTS both = LOAD(buffer + at);
            __asm__ volatile("" ::"v"(AND(both, odd)), "v"(OP(slli_epi32)(both, 16)));
        }
    return rounds * LOOP_BUFFER / 2;
}

static int64_t LOOP(narrow_f16)(unsigned char *buffer, int64_t rounds) {
    FLOATS value = OP(set1_ps)(1.25f);
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < LOOP_BUFFER; at += LOOP(bytes) / 2) {
            __asm__ volatile("" : "+v"(value));
            STORE_HALF(buffer + at, OP(cvtps_ph)(value, _MM_FROUND_TO_NEAREST_INT));
        }
    return rounds * LOOP_BUFFER / 2;
}

static inline INTS LOOP(rounded)(INTS bits) {
    const INTS lowest = AND(OP(srli_epi32)(bits, 16), OP(set1_epi32)(1));
    return OP(add_epi32)(OP(add_epi32)(bits, OP(set1_epi32)(0x7fff)), lowest);
}

static int64_t LOOP(narrow_bf16_pairs)(unsigned char *buffer, int64_t rounds) {
    INTS odd = OP(set1_epi32)(0x3fa00000), even = odd;
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < LOOP_BUFFER; at += LOOP(bytes)) {
            __asm__ volatile("" : "+v"(odd), "+v"(even));
            STORE(buffer + at, TAKE_ODD(OP(srli_epi32)(LOOP(rounded)(even), 16), LOOP(rounded)(odd)));
        }
    return rounds * LOOP_BUFFER / 2;
}

/* Half up, ties only looked for (kernels/shared/pair.h). */
static int64_t LOOP(narrow_bf16_up)(unsigned char *buffer, int64_t rounds) {
    const INTS half = OP(set1_epi32)(0x8000);
    INTS odd = OP(set1_epi32)(0x3fa00000), even = odd, least = odd;
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < LOOP_BUFFER; at += LOOP(bytes)) {
            __asm__ volatile("" : "+v"(odd), "+v"(even));
            const INTS a = OP(add_epi32)(even, half), b = OP(add_epi32)(odd, half);
            least = OP(min_epu16)(least, OP(min_epu16)(a, b));
            STORE(buffer + at, TAKE_ODD(OP(srli_epi32)(a, 16), b));
        }
    __asm__ volatile("" ::"v"(least));
    return rounds * LOOP_BUFFER / 2;
}

#undef LOOP
#undef OP
#undef AND
#undef LOAD
#undef STORE
#undef LOAD_HALF
#undef STORE_HALF
#undef TAKE_ODD
#undef FLOATS
#undef INTS
#undef SUMS
#endif
