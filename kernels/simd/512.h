// SPDX-License-Identifier: Apache-2.0
/* The vocabulary of ../vec.h with 16 lanes; AVX-512 F, BW, VL, DQ. Tails use opmasks, which suppress faults. */
#pragma once

#include "kernels/simd/intrinsics.h"
#include <stdint.h>

#define NB_LANES 16
#define NB_WIDTH NB_512
#define NB_CPU_NEEDED (NB_CPU_AVX2 | NB_CPU_AVX512)
#define NB_HAVE_RSQRT14

typedef __m512 vec;
typedef __m256i vec16; /* its lanes in 16 bits */
typedef __m512i raw;   /* a whole register of bytes */
#define NB_VEC(operation) _mm512_##operation
#define NB_RAW(operation) _mm512_##operation##_si512

/* Bit i is set when i < n, 0 <= n <= 16. */
static inline __mmask16 nb_lanes_below(int64_t n) { return (__mmask16)_bzhi_u32(0xffff, (unsigned)n); }

static inline vec vec_load_f32_tail(const float *p, int64_t n) { return _mm512_maskz_loadu_ps(nb_lanes_below(n), p); }
static inline void vec_store_f32_tail(float *p, vec v, int64_t n) { _mm512_mask_storeu_ps(p, nb_lanes_below(n), v); }
static inline vec vec_keep(vec v, int64_t n) { return _mm512_maskz_mov_ps(nb_lanes_below(n), v); }
static inline vec vec_blend(vec a, vec b, int64_t n) { return _mm512_mask_mov_ps(b, nb_lanes_below(n), a); }
static inline int nb_negative_bytes(raw v) { return __builtin_popcountll(_mm512_movepi8_mask(v)); }
static inline vec vec_select_less(vec a, vec b, vec yes, vec no) {
    return _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), yes);
}
static inline vec nb_of_bits(raw v) { return _mm512_castsi512_ps(v); }
static inline vec16 nb_low_halves(raw v) { return _mm512_cvtepi32_epi16(v); }
static inline raw nb_quiet_nans(vec v, raw rounded) {
    const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(rounded, is_nan, _mm512_castps_si512(v), _mm512_set1_epi32(0x400000));
}

/* Lanes i and i + 8, then i + 4, i + 2, i + 1. */
static inline float vec_sum(vec v) {
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
}

static inline vec16 vec16_load(const uint16_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline void vec16_store(uint16_t *p, vec16 h) { _mm256_storeu_si256((__m256i *)p, h); }
static inline vec16 vec16_load_tail(const uint16_t *p, int64_t n) {
    return _mm256_maskz_loadu_epi16(nb_lanes_below(n), p);
}
static inline void vec16_store_tail(uint16_t *p, vec16 h, int64_t n) {
    _mm256_mask_storeu_epi16(p, nb_lanes_below(n), h);
}
static inline uint16_t vec16_first(vec16 h) { return (uint16_t)_mm256_extract_epi16(h, 0); }

#include "x86.h"

static inline __attribute__((always_inline)) void vec_stream_f16(uint16_t *p, vec v) {
    _mm256_stream_si256((__m256i *)p, nb_narrow_f16(v));
}
