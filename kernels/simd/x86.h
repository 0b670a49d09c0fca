// SPDX-License-Identifier: Apache-2.0
/* What is the same in every width of x86, from what 128.h, 256.h and 512.h define. */
#ifndef NB_SIMD_X86_H
#define NB_SIMD_X86_H

static inline vec vec_load_f16(const uint16_t *p) { return nb_widen_f16(vec16_load(p)); }
static inline vec vec_load_bf16(const uint16_t *p) { return nb_widen_bf16(vec16_load(p)); }
static inline vec vec_load_f16_tail(const uint16_t *p, int64_t n) { return nb_widen_f16(vec16_load_tail(p, n)); }
static inline vec vec_load_bf16_tail(const uint16_t *p, int64_t n) { return nb_widen_bf16(vec16_load_tail(p, n)); }
static inline void vec_store_f16(uint16_t *p, vec v) { vec16_store(p, nb_narrow_f16(v)); }
static inline void vec_store_bf16(uint16_t *p, vec v) { vec16_store(p, nb_narrow_bf16(v)); }
static inline void vec_store_f16_tail(uint16_t *p, vec v, int64_t n) { vec16_store_tail(p, nb_narrow_f16(v), n); }
static inline void vec_store_bf16_tail(uint16_t *p, vec v, int64_t n) { vec16_store_tail(p, nb_narrow_bf16(v), n); }
static inline vec vec_round_f16(vec v) { return nb_widen_f16(nb_narrow_f16(v)); }
static inline vec vec_round_bf16(vec v) { return nb_widen_bf16(nb_narrow_bf16(v)); }

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

#endif
