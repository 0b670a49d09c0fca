// SPDX-License-Identifier: Apache-2.0
/* The vocabulary of ../vec.h with 8 lanes; AVX2, FMA, F16C. */
#ifndef NB_SIMD_256_H
#define NB_SIMD_256_H

#include "kernels/simd/intrinsics.h"
#include <stdint.h>

#include "tail16.h"

#define NB_LANES 8
#ifndef NB_WIDTH /* 256x.h sets its own */
#define NB_WIDTH NB_256
#define NB_CPU_NEEDED NB_CPU_AVX2
#endif

typedef __m256 vec;
typedef __m128i vec16; /* its lanes in 16 bits */

/* Lane i is set when i < n. */
static inline __m256i nb_lanes_below(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vec vec_set1(float s) { return _mm256_set1_ps(s); }
static inline vec vec_load_f32(const float *p) { return _mm256_loadu_ps(p); }
static inline void vec_store_f32(float *p, vec v) { _mm256_storeu_ps(p, v); }
static inline vec vec_load_f32_tail(const float *p, int64_t n) { return _mm256_maskload_ps(p, nb_lanes_below(n)); }
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
static inline vec vec_keep(vec v, int64_t n) { return _mm256_and_ps(v, _mm256_castsi256_ps(nb_lanes_below(n))); }
static inline vec vec_fma(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
static inline vec vec_sqrt(vec v) { return _mm256_sqrt_ps(v); }
static inline vec vec_min(vec a, vec b) { return _mm256_min_ps(a, b); }
static inline vec vec_max(vec a, vec b) { return _mm256_max_ps(a, b); }
static inline vec vec_blend(vec a, vec b, int64_t n) {
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(nb_lanes_below(n)));
}
static inline int vec_negatives(vec a, vec b, vec c, vec d) {
    const __m256i half = _mm256_packs_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b));
    const __m256i other = _mm256_packs_epi32(_mm256_castps_si256(c), _mm256_castps_si256(d));
    return __builtin_popcount((unsigned)_mm256_movemask_epi8(_mm256_packs_epi16(half, other)));
}
static inline float vec_first(vec v) { return _mm256_cvtss_f32(v); }
static inline vec vec_abs(vec v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v); }
static inline vec vec_copysign(vec magnitude, vec sign) {
    const __m256 bit = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_andnot_ps(bit, magnitude), _mm256_and_ps(bit, sign));
}
static inline vec vec_select_less(vec a, vec b, vec yes, vec no) {
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
static inline vec vec_pow2(vec t) {
    __m256i k = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(k, _mm256_set1_epi32(0x3f800000)));
}

/* Lanes i and i + 4, then i + 2, then i + 1. */
static inline float vec_sum(vec v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
}

static inline vec nb_widen_bf16(vec16 h) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
/* Round to nearest even by adding half an ulp less the parity; NaNs are made quiet, since the carry could lose them. */
static inline vec16 nb_narrow_bf16(vec v) {
    __m256i u = _mm256_castps_si256(v);
    __m256i parity = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(parity, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}
static inline vec16 nb_narrow_f16(vec v) { return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }
static inline vec nb_widen_f16(vec16 h) { return _mm256_cvtph_ps(h); }
static inline vec16 vec16_load(const uint16_t *p) { return _mm_loadu_si128((const __m128i *)p); }
static inline void vec16_store(uint16_t *p, vec16 h) { _mm_storeu_si128((__m128i *)p, h); }
static inline vec16 vec16_load_tail(const uint16_t *p, int64_t n) { return nb_load_16_tail(p, n); }
static inline void vec16_store_tail(uint16_t *p, vec16 h, int64_t n) { nb_store_16_tail(p, h, n); }
static inline uint16_t vec16_first(vec16 h) { return (uint16_t)_mm_extract_epi16(h, 0); }

/* A whole register of raw bytes, any alignment; raw_stream wants its own. */
typedef __m256i raw;
static inline raw raw_load(const char *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline void raw_store(char *p, raw v) { _mm256_storeu_si256((__m256i *)p, v); }
static inline void raw_stream(char *p, raw v) { _mm256_stream_si256((__m256i *)p, v); }
static inline raw raw_or(raw a, raw b) { return _mm256_or_si256(a, b); }

static inline __attribute__((always_inline)) void vec_stream_f32(float *p, vec v) { _mm256_stream_ps(p, v); }
static inline __attribute__((always_inline)) void vec_stream_f16(uint16_t *p, vec v) {
    _mm_stream_si128((__m128i *)p, nb_narrow_f16(v));
}

#include "x86.h"

#endif
