// SPDX-License-Identifier: Apache-2.0
/* The vocabulary of ../vec.h with one lane. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#define NB_LANES 1
#define NB_WIDTH NB_SCALAR
#if defined(__x86_64__)
#define NB_CPU_NEEDED NB_CPU_AVX2
#else
#define NB_CPU_NEEDED 0
#endif

typedef float vec;

static inline vec vec_set1(float s) { return s; }
static inline vec vec_load_f32(const float *p) { return *p; }
static inline void vec_store_f32(float *p, vec v) { *p = v; }
static inline vec vec_load_f32_tail(const float *p, int64_t n) { return n > 0 ? *p : 0.0f; }
static inline void vec_store_f32_tail(float *p, vec v, int64_t n) {
    if (n > 0) *p = v;
}
static inline vec vec_keep(vec v, int64_t n) { return n > 0 ? v : 0.0f; }
static inline vec vec_fma(vec a, vec b, vec c) { return __builtin_fmaf(a, b, c); }
static inline vec vec_sqrt(vec v) { return __builtin_sqrtf(v); }
static inline vec vec_min(vec a, vec b) { return a < b ? a : b; }
static inline vec vec_max(vec a, vec b) { return a > b ? a : b; }
static inline vec vec_blend(vec a, vec b, int64_t n) { return n > 0 ? a : b; }
static inline int nb_sign(vec v) { return __builtin_signbitf(v) != 0; }
static inline int vec_negatives(vec a, vec b, vec c, vec d) {
    return nb_sign(a) + nb_sign(b) + nb_sign(c) + nb_sign(d);
}
static inline float vec_first(vec v) { return v; }
static inline vec vec_abs(vec v) { return __builtin_fabsf(v); }
static inline vec vec_copysign(vec magnitude, vec sign) { return __builtin_copysignf(magnitude, sign); }
static inline vec vec_select_less(vec a, vec b, vec yes, vec no) { return a < b ? yes : no; }
static inline vec vec_pow2(vec t) {
    uint32_t u;
    memcpy(&u, &t, sizeof u);
    u = (u << 23) + 0x3f800000u;
    memcpy(&t, &u, sizeof t);
    return t;
}
static inline float vec_sum(vec v) { return v; }

#if defined(__x86_64__)
#include "kernels/simd/intrinsics.h"

static inline float nb_rsqrt_estimate(float v) { return _mm_cvtss_f32(_mm_rsqrt_ss(_mm_set_ss(v))); }
static inline float nb_f16_to_f32(uint16_t h) { return _cvtsh_ss(h); }
static inline uint16_t nb_f32_to_f16(float f) { return _cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT); }

#elif defined(__aarch64__)

#include "kernels/simd/arm.h"

#else
#error "no hardware reciprocal square root and f16 conversion known for this architecture"
#endif

static inline float nb_bf16_to_f32(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
/* Round to nearest even by adding half an ulp less the parity; a NaN is made quiet first, since the carry could lose it. */
static inline uint16_t nb_f32_to_bf16(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if (f != f) return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

static inline vec vec_load_f16(const uint16_t *p) { return nb_f16_to_f32(*p); }
static inline void vec_store_f16(uint16_t *p, vec v) { *p = nb_f32_to_f16(v); }
static inline vec vec_load_bf16(const uint16_t *p) { return nb_bf16_to_f32(*p); }
static inline void vec_store_bf16(uint16_t *p, vec v) { *p = nb_f32_to_bf16(v); }
static inline vec vec_load_f16_tail(const uint16_t *p, int64_t n) { return n > 0 ? vec_load_f16(p) : 0.0f; }
static inline vec vec_load_bf16_tail(const uint16_t *p, int64_t n) { return n > 0 ? vec_load_bf16(p) : 0.0f; }
static inline void vec_store_f16_tail(uint16_t *p, vec v, int64_t n) {
    if (n > 0) vec_store_f16(p, v);
}
static inline void vec_store_bf16_tail(uint16_t *p, vec v, int64_t n) {
    if (n > 0) vec_store_bf16(p, v);
}
static inline vec vec_round_f16(vec v) { return nb_f16_to_f32(nb_f32_to_f16(v)); }
static inline vec vec_round_bf16(vec v) { return nb_bf16_to_f32(nb_f32_to_bf16(v)); }

/* A whole general register of raw bytes, any alignment; raw_stream wants its own. */
typedef uint64_t raw;
static inline raw raw_load(const char *p) {
    raw v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline void raw_store(char *p, raw v) { memcpy(p, &v, sizeof v); }
#if defined(__x86_64__)
static inline void raw_stream(char *p, raw v) { _mm_stream_si64((long long *)p, (long long)v); }
static inline void raw_stream_end(void) { _mm_sfence(); }
#else
static inline void raw_stream(char *p, raw v) { raw_store(p, v); }
static inline void raw_stream_end(void) {}
#endif
static inline raw raw_or(raw a, raw b) { return a | b; }
#define NB_REGISTER "v" /* of pack.h, on x86 */
static inline raw raw_opaque(raw v) {
    __asm__ volatile("" : "+r"(v));
    return v;
}
