// SPDX-License-Identifier: Apache-2.0
/* The vocabulary of ../vec.h with 4 lanes; compiled with the flags of 256.h, so that the two differ in width alone. */
#ifndef NB_SIMD_128_H
#define NB_SIMD_128_H

#include "kernels/simd/intrinsics.h"
#include <stdint.h>

#include "tail16.h"

#define NB_LANES 4
#define NB_WIDTH NB_128
#define NB_CPU_NEEDED NB_CPU_AVX2

typedef __m128 vec;
typedef __m128i vec16; /* its lanes in 16 bits */

/* Lane i is set when i < n. */
static inline __m128i nb_lanes_below(int64_t n) {
    return _mm_cmpgt_epi32(_mm_set1_epi32((int)n), _mm_setr_epi32(0, 1, 2, 3));
}
static inline vec vec_set1(float s) { return _mm_set1_ps(s); }
static inline vec vec_load_f32(const float *p) { return _mm_loadu_ps(p); }
static inline void vec_store_f32(float *p, vec v) { _mm_storeu_ps(p, v); }
static inline vec vec_load_f32_tail(const float *p, int64_t n) { return _mm_maskload_ps(p, nb_lanes_below(n)); }
/* In pieces: a masked store takes 5.8 ns on a Zen 3, these 1.6 at most. */
static inline void vec_store_f32_tail(float *p, vec v, int64_t n) {
    if (n & 2) {
        _mm_storel_pi((__m64 *)p, v);
        p += 2;
        v = _mm_movehl_ps(v, v);
    }
    if (n & 1) _mm_store_ss(p, v);
}
static inline vec vec_keep(vec v, int64_t n) { return _mm_and_ps(v, _mm_castsi128_ps(nb_lanes_below(n))); }
static inline vec vec_fma(vec a, vec b, vec c) { return _mm_fmadd_ps(a, b, c); }
static inline vec vec_sqrt(vec v) { return _mm_sqrt_ps(v); }
static inline vec vec_min(vec a, vec b) { return _mm_min_ps(a, b); }
static inline vec vec_max(vec a, vec b) { return _mm_max_ps(a, b); }
static inline vec vec_blend(vec a, vec b, int64_t n) {
    return _mm_blendv_ps(b, a, _mm_castsi128_ps(nb_lanes_below(n)));
}
static inline int vec_negatives(vec a, vec b, vec c, vec d) {
    const __m128i half = _mm_packs_epi32(_mm_castps_si128(a), _mm_castps_si128(b));
    const __m128i other = _mm_packs_epi32(_mm_castps_si128(c), _mm_castps_si128(d));
    return __builtin_popcount((unsigned)_mm_movemask_epi8(_mm_packs_epi16(half, other)));
}
static inline float vec_first(vec v) { return _mm_cvtss_f32(v); }
static inline vec vec_abs(vec v) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), v); }
static inline vec vec_copysign(vec magnitude, vec sign) {
    const __m128 bit = _mm_set1_ps(-0.0f);
    return _mm_or_ps(_mm_andnot_ps(bit, magnitude), _mm_and_ps(bit, sign));
}
static inline vec vec_select_less(vec a, vec b, vec yes, vec no) { return _mm_blendv_ps(no, yes, _mm_cmplt_ps(a, b)); }
static inline vec vec_pow2(vec t) {
    __m128i k = _mm_slli_epi32(_mm_castps_si128(t), 23);
    return _mm_castsi128_ps(_mm_add_epi32(k, _mm_set1_epi32(0x3f800000)));
}

/* Lanes i and i + 2, then i + 1. */
static inline float vec_sum(vec v) {
    __m128 s = _mm_add_ps(v, _mm_movehl_ps(v, v));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
}

static inline vec nb_widen_bf16(vec16 h) { return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(h), 16)); }
/* Round to nearest even by adding half an ulp less the parity; NaNs are made quiet, since the carry could lose them. */
static inline vec16 nb_narrow_bf16(vec v) {
    __m128i u = _mm_castps_si128(v);
    __m128i parity = _mm_and_si128(_mm_srli_epi32(u, 16), _mm_set1_epi32(1));
    __m128i rounded = _mm_add_epi32(u, _mm_add_epi32(parity, _mm_set1_epi32(0x7fff)));
    __m128i quiet = _mm_or_si128(u, _mm_set1_epi32(0x400000));
    __m128i is_nan = _mm_castps_si128(_mm_cmpunord_ps(v, v));
    __m128i high = _mm_srli_epi32(_mm_blendv_epi8(rounded, quiet, is_nan), 16);
    return _mm_packus_epi32(high, high);
}
static inline vec16 nb_narrow_f16(vec v) { return _mm_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }
static inline vec nb_widen_f16(vec16 h) { return _mm_cvtph_ps(h); }
static inline vec16 vec16_load(const uint16_t *p) { return _mm_loadl_epi64((const __m128i *)p); }
static inline void vec16_store(uint16_t *p, vec16 h) { _mm_storel_epi64((__m128i *)p, h); }
static inline vec16 vec16_load_tail(const uint16_t *p, int64_t n) { return nb_load_16_tail(p, n); }
static inline void vec16_store_tail(uint16_t *p, vec16 h, int64_t n) { nb_store_16_tail(p, h, n); }
static inline uint16_t vec16_first(vec16 h) { return (uint16_t)_mm_extract_epi16(h, 0); }

/* A whole register of raw bytes, any alignment; raw_stream wants its own. */
typedef __m128i raw;
static inline raw raw_load(const char *p) { return _mm_loadu_si128((const __m128i *)p); }
static inline void raw_store(char *p, raw v) { _mm_storeu_si128((__m128i *)p, v); }
static inline void raw_stream(char *p, raw v) { _mm_stream_si128((__m128i *)p, v); }
static inline raw raw_or(raw a, raw b) { return _mm_or_si128(a, b); }

static inline __attribute__((always_inline)) void vec_stream_f32(float *p, vec v) { _mm_stream_ps(p, v); }
static inline __attribute__((always_inline)) void vec_stream_f16(uint16_t *p, vec v) {
    _mm_stream_si64((long long *)p, _mm_cvtsi128_si64(_mm_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)));
}

#include "x86.h"

#endif
