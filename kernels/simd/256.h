// SPDX-License-Identifier: Apache-2.0
/* The vocabulary of ../vec.h with 8 lanes; AVX2, FMA, F16C. */
#pragma once

#include "kernels/simd/intrinsics.h"
#include <stdint.h>

#define NB_LANES 8
#ifndef NB_WIDTH /* 256x.h sets its own */
#define NB_WIDTH NB_256
#define NB_CPU_NEEDED NB_CPU_AVX2
#endif

typedef __m256 vec;
typedef __m128i vec16; /* its lanes in 16 bits */
typedef __m256i raw;   /* a whole register of bytes */
#define NB_VEC(operation) _mm256_##operation
#define NB_RAW(operation) _mm256_##operation##_si256

/* Lane i is set when i < n. */
static inline __m256i nb_lanes_below(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
/* In pieces: a masked store takes 5.8 ns on a Zen 3, these 1.6 at most. */
static inline void vec_store_f32_tail(float *p, vec v, int64_t n) {
    __m128 rest = _mm256_castps256_ps128(v);
    if (n & 4) {
        _mm_storeu_ps(p, rest);
        p += 4;
        rest = _mm256_extractf128_ps(v, 1);
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)p, rest);
        p += 2;
        rest = _mm_movehl_ps(rest, rest);
    }
    if (n & 1) _mm_store_ss(p, rest);
}
static inline vec vec_select_less(vec a, vec b, vec yes, vec no) {
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
static inline vec nb_of_bits(raw v) { return _mm256_castsi256_ps(v); }
static inline vec16 nb_low_halves(raw v) {
    return _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

/* Lanes i and i + 4, then i + 2, then i + 1. */
static inline float vec_sum(vec v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
}

static inline vec16 vec16_load(const uint16_t *p) { return _mm_loadu_si128((const __m128i *)p); }
static inline void vec16_store(uint16_t *p, vec16 h) { _mm_storeu_si128((__m128i *)p, h); }

#include "avx2.h"
#include "x86.h"

static inline __attribute__((always_inline)) void vec_stream_f16(uint16_t *p, vec v) {
    _mm_stream_si128((__m128i *)p, nb_narrow_f16(v));
}
