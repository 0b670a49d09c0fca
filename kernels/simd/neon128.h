// SPDX-License-Identifier: Apache-2.0
/* The vocabulary of ../vec.h with the 4 lanes of Advanced SIMD (NEON), which every aarch64 has. Sums are made in the order of 128.h, so
 * that both give the same bits. */
#pragma once

#include <arm_neon.h>
#include <stdint.h>

#include "kernels/simd/arm.h"

#define NB_LANES 4
#define NB_WIDTH NB_128
#define NB_CPU_NEEDED NB_CPU_NEON

typedef float32x4_t vec;
typedef uint16x4_t vec16; /* its lanes in 16 bits */

/* Lane i is set when i < n. */
static inline uint32x4_t nb_lanes_below(int64_t n) {
    const uint32x4_t lanes = {0, 1, 2, 3};
    return vcltq_u32(lanes, vdupq_n_u32((uint32_t)n));
}
static inline vec vec_set1(float s) { return vdupq_n_f32(s); }
static inline vec vec_load_f32(const float *p) { return vld1q_f32(p); }
static inline void vec_store_f32(float *p, vec v) { vst1q_f32(p, v); }
/* There are no masks: a pair, then a single element. */
static inline vec vec_load_f32_tail(const float *p, int64_t n) {
    vec v = vdupq_n_f32(0.0f);
    if (n & 2) v = vcombine_f32(vld1_f32(p), vdup_n_f32(0.0f));
    if (n == 1) v = vld1q_lane_f32(p, v, 0);
    if (n == 3) v = vld1q_lane_f32(p + 2, v, 2);
    return v;
}
static inline void vec_store_f32_tail(float *p, vec v, int64_t n) {
    if (n & 2) vst1_f32(p, vget_low_f32(v));
    if (n == 1) vst1q_lane_f32(p, v, 0);
    if (n == 3) vst1q_lane_f32(p + 2, v, 2);
}
static inline vec vec_blend(vec a, vec b, int64_t n) { return vbslq_f32(nb_lanes_below(n), a, b); }
static inline vec vec_keep(vec v, int64_t n) { return vec_blend(v, vdupq_n_f32(0.0f), n); }
static inline vec vec_fma(vec a, vec b, vec c) { return vfmaq_f32(c, a, b); }
static inline vec vec_sqrt(vec v) { return vsqrtq_f32(v); }
/* FMIN and FMAX would hand on a NaN of the first operand. */
static inline vec vec_min(vec a, vec b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
static inline vec vec_max(vec a, vec b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
static inline uint32x4_t nb_sign(vec v) { return vshrq_n_u32(vreinterpretq_u32_f32(v), 31); }
static inline int vec_negatives(vec a, vec b, vec c, vec d) {
    return (int)vaddvq_u32(vaddq_u32(vaddq_u32(nb_sign(a), nb_sign(b)), vaddq_u32(nb_sign(c), nb_sign(d))));
}
static inline float vec_first(vec v) { return vgetq_lane_f32(v, 0); }
static inline vec vec_abs(vec v) { return vabsq_f32(v); }
static inline vec vec_copysign(vec magnitude, vec sign) { return vbslq_f32(vdupq_n_u32(0x80000000u), sign, magnitude); }
static inline vec vec_select_less(vec a, vec b, vec yes, vec no) { return vbslq_f32(vcltq_f32(a, b), yes, no); }
static inline vec vec_pow2(vec t) {
    const uint32x4_t k = vshlq_n_u32(vreinterpretq_u32_f32(t), 23);
    return vreinterpretq_f32_u32(vaddq_u32(k, vdupq_n_u32(0x3f800000u)));
}

/* Lanes i and i + 2, then i + 1. */
static inline float vec_sum(vec v) {
    const float32x2_t s = vadd_f32(vget_low_f32(v), vget_high_f32(v));
    return vget_lane_f32(s, 0) + vget_lane_f32(s, 1);
}

static inline vec nb_widen_bf16(vec16 h) { return vreinterpretq_f32_u32(vshll_n_u16(h, 16)); }
/* Round to nearest even by adding half an ulp less the parity; NaNs are made quiet, since the carry could lose them. */
static inline vec16 nb_narrow_bf16(vec v) {
    const uint32x4_t u = vreinterpretq_u32_f32(v), parity = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(u, vaddq_u32(parity, vdupq_n_u32(0x7fff)));
    const uint32x4_t quiet = vorrq_u32(u, vdupq_n_u32(0x400000));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), rounded, quiet), 16);
}
static inline vec16 nb_narrow_f16(vec v) { return vreinterpret_u16_f16(vcvt_f16_f32(v)); }
static inline vec nb_widen_f16(vec16 h) { return vcvt_f32_f16(vreinterpret_f16_u16(h)); }
static inline vec16 vec16_load(const uint16_t *p) { return vld1_u16(p); }
static inline void vec16_store(uint16_t *p, vec16 h) { vst1_u16(p, h); }

/* A whole register of raw bytes, any alignment, in lanes of 32 bits. */
typedef uint32x4_t raw;
static inline raw raw_load(const char *p) { return vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)p)); }
static inline void raw_store(char *p, raw v) { vst1q_u8((uint8_t *)p, vreinterpretq_u8_u32(v)); }
/* STNP stores pairs alone: the two halves. */
static inline void raw_stream(char *p, raw v) {
    __asm__ volatile("stnp %d0, %d1, [%2]" : : "w"(vget_low_u32(v)), "w"(vget_high_u32(v)), "r"(p) : "memory");
}
static inline void raw_stream_end(void) {}
static inline raw raw_or(raw a, raw b) { return vorrq_u32(a, b); }
static inline raw raw_opaque(raw v) {
    __asm__ volatile("" : "+w"(v));
    return v;
}

/* Up to 7 elements of 16 bits; those from n on are 0. */
static __attribute__((noinline, unused)) raw nb_load_16_tail(const uint16_t *p, int64_t n) {
    uint16_t all[8] = {0};
    for (int64_t i = 0; i < n; i++) all[i] = p[i];
    return vreinterpretq_u32_u16(vld1q_u16(all));
}
static __attribute__((noinline, unused)) void nb_store_16_tail(uint16_t *p, raw v, int64_t n) {
    uint16_t all[8];
    vst1q_u16(all, vreinterpretq_u16_u32(v));
    for (int64_t i = 0; i < n; i++) p[i] = all[i];
}
static inline vec16 vec16_load_tail(const uint16_t *p, int64_t n) {
    return vget_low_u16(vreinterpretq_u16_u32(nb_load_16_tail(p, n)));
}
static inline void vec16_store_tail(uint16_t *p, vec16 h, int64_t n) {
    nb_store_16_tail(p, vreinterpretq_u32_u16(vcombine_u16(h, h)), n);
}

static inline __attribute__((always_inline)) void vec_stream_f32(float *p, vec v) {
    raw_stream((char *)p, vreinterpretq_u32_f32(v));
}
static inline __attribute__((always_inline)) void vec_stream_f16(uint16_t *p, vec v) {
    vec16_store(p, nb_narrow_f16(v)); /* half a register: no pair to store */
}

static inline float nb_bf16_to_f32(uint16_t h) { return vec_first(nb_widen_bf16(vdup_n_u16(h))); }
static inline uint16_t nb_f32_to_bf16(float f) { return vget_lane_u16(nb_narrow_bf16(vdupq_n_f32(f)), 0); }

#include "kernels/simd/halves.h"
