// SPDX-License-Identifier: Apache-2.0
/* The vocabulary of ../vec.h with 16 lanes; AVX-512 F, BW, VL, DQ. Tails use opmasks, which suppress faults. */
#ifndef NB_SIMD_512_H
#define NB_SIMD_512_H

#include "kernels/simd/intrinsics.h"
#include <stdint.h>

#define NB_LANES 16
#define NB_WIDTH NB_512
#define NB_CPU_NEEDED (NB_CPU_AVX2 | NB_CPU_AVX512)
#define NB_HAVE_RSQRT14

typedef __m512 vec;
typedef __m256i vec16; /* its lanes in 16 bits */

/* Bit i is set when i < n, 0 <= n <= 16. */
static inline __mmask16 nb_lanes_below(int64_t n) { return (__mmask16)_bzhi_u32(0xffff, (unsigned)n); }

static inline vec vec_set1(float s) { return _mm512_set1_ps(s); }
static inline vec vec_load_f32(const float *p) { return _mm512_loadu_ps(p); }
static inline void vec_store_f32(float *p, vec v) { _mm512_storeu_ps(p, v); }
static inline vec vec_load_f32_tail(const float *p, int64_t n) { return _mm512_maskz_loadu_ps(nb_lanes_below(n), p); }
static inline void vec_store_f32_tail(float *p, vec v, int64_t n) { _mm512_mask_storeu_ps(p, nb_lanes_below(n), v); }
static inline vec vec_keep(vec v, int64_t n) { return _mm512_maskz_mov_ps(nb_lanes_below(n), v); }
static inline vec vec_fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
static inline vec vec_sqrt(vec v) { return _mm512_sqrt_ps(v); }
static inline vec vec_min(vec a, vec b) { return _mm512_min_ps(a, b); }
static inline vec vec_max(vec a, vec b) { return _mm512_max_ps(a, b); }
static inline vec vec_blend(vec a, vec b, int64_t n) { return _mm512_mask_mov_ps(b, nb_lanes_below(n), a); }
static inline int vec_negatives(vec a, vec b, vec c, vec d) {
    const __m512i half = _mm512_packs_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b));
    const __m512i other = _mm512_packs_epi32(_mm512_castps_si512(c), _mm512_castps_si512(d));
    return __builtin_popcountll(_mm512_movepi8_mask(_mm512_packs_epi16(half, other)));
}
static inline float vec_first(vec v) { return _mm512_cvtss_f32(v); }
static inline vec vec_abs(vec v) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), v); }
static inline vec vec_copysign(vec magnitude, vec sign) {
    const __m512 bit = _mm512_set1_ps(-0.0f);
    return _mm512_or_ps(_mm512_andnot_ps(bit, magnitude), _mm512_and_ps(bit, sign));
}
static inline vec vec_select_less(vec a, vec b, vec yes, vec no) {
    return _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), yes);
}
static inline vec vec_pow2(vec t) {
    __m512i k = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(k, _mm512_set1_epi32(0x3f800000)));
}

/* Lanes i and i + 8, then i + 4, i + 2, i + 1. */
static inline float vec_sum(vec v) {
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
}

static inline vec nb_widen_bf16(vec16 h) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
/* Round to nearest even by adding half an ulp less the parity; NaNs are made quiet, since the carry could lose them. */
static inline vec16 nb_narrow_bf16(vec v) {
    __m512i u = _mm512_castps_si512(v);
    __m512i parity = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(u, _mm512_add_epi32(parity, _mm512_set1_epi32(0x7fff)));
    __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, is_nan, u, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}
static inline vec16 nb_narrow_f16(vec v) { return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }
static inline vec nb_widen_f16(vec16 h) { return _mm512_cvtph_ps(h); }
static inline vec16 vec16_load(const uint16_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline void vec16_store(uint16_t *p, vec16 h) { _mm256_storeu_si256((__m256i *)p, h); }
static inline vec16 vec16_load_tail(const uint16_t *p, int64_t n) {
    return _mm256_maskz_loadu_epi16(nb_lanes_below(n), p);
}
static inline void vec16_store_tail(uint16_t *p, vec16 h, int64_t n) {
    _mm256_mask_storeu_epi16(p, nb_lanes_below(n), h);
}
static inline uint16_t vec16_first(vec16 h) { return (uint16_t)_mm256_extract_epi16(h, 0); }

/* A whole register of raw bytes, any alignment; raw_stream wants its own. */
typedef __m512i raw;
static inline raw raw_load(const char *p) { return _mm512_loadu_si512((const __m512i *)p); }
static inline void raw_store(char *p, raw v) { _mm512_storeu_si512((__m512i *)p, v); }
static inline void raw_stream(char *p, raw v) { _mm512_stream_si512((__m512i *)p, v); }
static inline raw raw_or(raw a, raw b) { return _mm512_or_si512(a, b); }

static inline __attribute__((always_inline)) void vec_stream_f32(float *p, vec v) { _mm512_stream_ps(p, v); }
static inline __attribute__((always_inline)) void vec_stream_f16(uint16_t *p, vec v) {
    _mm256_stream_si256((__m256i *)p, nb_narrow_f16(v));
}

#include "x86.h"

#endif
