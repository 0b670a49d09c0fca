// SPDX-License-Identifier: Apache-2.0
/* What is the same in every width of x86, from what 128.h, 256.h and 512.h define: NB_VEC(x) and NB_RAW(x) are the width's instruction x. */
#pragma once

static inline vec vec_set1(float s) { return NB_VEC(set1_ps)(s); }
static inline vec vec_load_f32(const float *p) { return NB_VEC(loadu_ps)(p); }
static inline void vec_store_f32(float *p, vec v) { NB_VEC(storeu_ps)(p, v); }
static inline vec vec_fma(vec a, vec b, vec c) { return NB_VEC(fmadd_ps)(a, b, c); }
static inline vec vec_sqrt(vec v) { return NB_VEC(sqrt_ps)(v); }
static inline vec vec_min(vec a, vec b) { return NB_VEC(min_ps)(a, b); }
static inline vec vec_max(vec a, vec b) { return NB_VEC(max_ps)(a, b); }
static inline float vec_first(vec v) { return NB_VEC(cvtss_f32)(v); }
static inline vec vec_abs(vec v) { return NB_VEC(andnot_ps)(NB_VEC(set1_ps)(-0.0f), v); }
static inline vec vec_copysign(vec magnitude, vec sign) {
    const vec bit = NB_VEC(set1_ps)(-0.0f);
    return NB_VEC(or_ps)(NB_VEC(andnot_ps)(bit, magnitude), NB_VEC(and_ps)(bit, sign));
}
static inline vec vec_pow2(vec t) {
    const raw k = NB_VEC(slli_epi32)(NB_RAW(castps)(t), 23);
    return nb_of_bits(NB_VEC(add_epi32)(k, NB_VEC(set1_epi32)(0x3f800000)));
}
static inline int vec_negatives(vec a, vec b, vec c, vec d) {
    const raw half = NB_VEC(packs_epi32)(NB_RAW(castps)(a), NB_RAW(castps)(b));
    const raw other = NB_VEC(packs_epi32)(NB_RAW(castps)(c), NB_RAW(castps)(d));
    return nb_negative_bytes(NB_VEC(packs_epi16)(half, other));
}

static inline vec nb_widen_f16(vec16 h) { return NB_VEC(cvtph_ps)(h); }
static inline vec16 nb_narrow_f16(vec v) { return NB_VEC(cvtps_ph)(v, _MM_FROUND_TO_NEAREST_INT); }
static inline vec nb_widen_bf16(vec16 h) { return nb_of_bits(NB_VEC(slli_epi32)(NB_VEC(cvtepu16_epi32)(h), 16)); }
/* Round to nearest even by adding half an ulp less the parity; NaNs are made quiet, since the carry could lose them. */
static inline vec16 nb_narrow_bf16(vec v) {
    const raw u = NB_RAW(castps)(v), parity = NB_RAW(and)(NB_VEC(srli_epi32)(u, 16), NB_VEC(set1_epi32)(1));
    const raw rounded = NB_VEC(add_epi32)(u, NB_VEC(add_epi32)(parity, NB_VEC(set1_epi32)(0x7fff)));
    return nb_low_halves(NB_VEC(srli_epi32)(nb_quiet_nans(v, rounded), 16));
}
#include "kernels/simd/halves.h"

/* Raw bytes have any alignment; raw_stream wants its own. */
static inline raw raw_load(const char *p) { return NB_RAW(loadu)((const raw *)p); }
static inline void raw_store(char *p, raw v) { NB_RAW(storeu)((raw *)p, v); }
static inline void raw_stream(char *p, raw v) { NB_RAW(stream)((raw *)p, v); }
static inline raw raw_or(raw a, raw b) { return NB_RAW(or)(a, b); }
static inline __attribute__((always_inline)) void vec_stream_f32(float *p, vec v) { NB_VEC(stream_ps)(p, v); }

#ifndef NB_REGISTER
#define NB_REGISTER "v" /* where an asm has a vector that a compiler shall not look into */
#endif
static inline raw raw_opaque(raw v) {
    __asm__ volatile("" : "+" NB_REGISTER(v));
    return v;
}

static inline float nb_bf16_to_f32(uint16_t h) {
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128((int)((uint32_t)h << 16))));
}
static inline float nb_f16_to_f32(uint16_t h) { return _cvtsh_ss(h); }
static inline uint16_t nb_f32_to_f16(float f) { return _cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT); }
static inline uint16_t nb_f32_to_bf16(float f) { return vec16_first(nb_narrow_bf16(vec_set1(f))); }
static inline float nb_rsqrt_estimate(float v) {
#ifdef NB_HAVE_RSQRT14
    return _mm_cvtss_f32(_mm_rsqrt14_ss(_mm_setzero_ps(), _mm_set_ss(v)));
#else
    return _mm_cvtss_f32(_mm_rsqrt_ss(_mm_set_ss(v)));
#endif
}

static inline void raw_stream_end(void) { _mm_sfence(); }
