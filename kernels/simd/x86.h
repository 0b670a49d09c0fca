// SPDX-License-Identifier: Apache-2.0
/* What is the same in every width of x86, from what 128.h, 256.h and 512.h define. */
#ifndef NB_SIMD_X86_H
#define NB_SIMD_X86_H

#include "kernels/simd/halves.h"

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

#endif
