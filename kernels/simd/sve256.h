// SPDX-License-Identifier: Apache-2.0
/* The vocabulary of ../vec.h with SVE vectors of 256 bits (-msve-vector-bits=256): 8 lanes, and predicates for tails. Sums are made in the
 * order of 256.h, so that both give the same bits. */
#pragma once

#include <arm_sve.h>
#include <stdint.h>

#include "kernels/simd/arm.h"

#define NB_LANES 8
#define NB_WIDTH NB_256
#define NB_CPU_NEEDED (NB_CPU_NEON | NB_CPU_SVE256)

typedef svfloat32_t vec __attribute__((arm_sve_vector_bits(256)));
typedef svuint32_t raw
    __attribute__((arm_sve_vector_bits(256))); /* a whole register of raw bytes, in lanes of 32 bits */
typedef raw vec16; /* each lane's 16 bits in the lower half of 32, as loads and conversions of this size have them */

static inline svbool_t nb_all(void) { return svptrue_b32(); }
/* Lane i is set when i < n. */
static inline svbool_t nb_lanes_below(int64_t n) { return svwhilelt_b32_s64(0, n); }
static inline vec vec_set1(float s) { return svdup_n_f32(s); }
static inline vec vec_load_f32(const float *p) { return svld1_f32(nb_all(), p); }
static inline void vec_store_f32(float *p, vec v) { svst1_f32(nb_all(), p, v); }
static inline vec vec_load_f32_tail(const float *p, int64_t n) { return svld1_f32(nb_lanes_below(n), p); }
static inline void vec_store_f32_tail(float *p, vec v, int64_t n) { svst1_f32(nb_lanes_below(n), p, v); }
static inline vec vec_blend(vec a, vec b, int64_t n) { return svsel_f32(nb_lanes_below(n), a, b); }
static inline vec vec_keep(vec v, int64_t n) { return vec_blend(v, svdup_n_f32(0.0f), n); }
static inline vec vec_fma(vec a, vec b, vec c) { return svmla_f32_x(nb_all(), c, a, b); }
static inline vec vec_sqrt(vec v) { return svsqrt_f32_x(nb_all(), v); }
/* FMIN and FMAX would hand on a NaN of the first operand. */
static inline vec vec_min(vec a, vec b) { return svsel_f32(svcmplt_f32(nb_all(), a, b), a, b); }
static inline vec vec_max(vec a, vec b) { return svsel_f32(svcmpgt_f32(nb_all(), a, b), a, b); }
static inline int nb_signs(vec v) {
    return (int)svcntp_b32(nb_all(), svcmplt_n_s32(nb_all(), svreinterpret_s32_f32(v), 0));
}
static inline int vec_negatives(vec a, vec b, vec c, vec d) {
    return nb_signs(a) + nb_signs(b) + nb_signs(c) + nb_signs(d);
}
static inline float vec_first(vec v) { return svlasta_f32(svpfalse_b(), v); }
static inline vec vec_abs(vec v) { return svabs_f32_x(nb_all(), v); }
static inline vec vec_copysign(vec magnitude, vec sign) {
    const raw m = svreinterpret_u32_f32(magnitude), s = svreinterpret_u32_f32(sign);
    return svreinterpret_f32_u32(
        svorr_u32_x(nb_all(), svand_n_u32_x(nb_all(), m, 0x7fffffffu), svand_n_u32_x(nb_all(), s, 0x80000000u)));
}
static inline vec vec_select_less(vec a, vec b, vec yes, vec no) {
    return svsel_f32(svcmplt_f32(nb_all(), a, b), yes, no);
}
static inline vec vec_pow2(vec t) {
    const raw k = svlsl_n_u32_x(nb_all(), svreinterpret_u32_f32(t), 23);
    return svreinterpret_f32_u32(svadd_n_u32_x(nb_all(), k, 0x3f800000u));
}

/* Lanes i and i + 4, then i + 2, then i + 1. */
static inline float vec_sum(vec v) {
    const vec s = svadd_f32_x(nb_all(), v, svext_f32(v, v, 4)), t = svadd_f32_x(nb_all(), s, svext_f32(s, s, 2));
    return vec_first(svadd_f32_x(nb_all(), t, svext_f32(t, t, 1)));
}

static inline vec nb_widen_bf16(vec16 h) { return svreinterpret_f32_u32(svlsl_n_u32_x(nb_all(), h, 16)); }
/* Round to nearest even by adding half an ulp less the parity; NaNs are made quiet, since the carry could lose them. */
static inline vec16 nb_narrow_bf16(vec v) {
    const raw u = svreinterpret_u32_f32(v), parity = svand_n_u32_x(nb_all(), svlsr_n_u32_x(nb_all(), u, 16), 1);
    const raw rounded = svadd_n_u32_x(nb_all(), svadd_u32_x(nb_all(), u, parity), 0x7fff);
    const raw quiet = svorr_n_u32_x(nb_all(), u, 0x400000);
    return svlsr_n_u32_x(nb_all(), svsel_u32(svcmpuo_f32(nb_all(), v, v), quiet, rounded), 16);
}
static inline vec16 nb_narrow_f16(vec v) { return svreinterpret_u32_f16(svcvt_f16_f32_x(nb_all(), v)); }
static inline vec nb_widen_f16(vec16 h) { return svcvt_f32_f16_x(nb_all(), svreinterpret_f16_u32(h)); }
static inline vec16 vec16_load(const uint16_t *p) { return svld1uh_u32(nb_all(), p); }
static inline void vec16_store(uint16_t *p, vec16 h) { svst1h_u32(nb_all(), p, h); }
static inline vec16 vec16_load_tail(const uint16_t *p, int64_t n) { return svld1uh_u32(nb_lanes_below(n), p); }
static inline void vec16_store_tail(uint16_t *p, vec16 h, int64_t n) { svst1h_u32(nb_lanes_below(n), p, h); }

/* Any alignment. */
static inline raw raw_load(const char *p) { return svreinterpret_u32_u8(svld1_u8(svptrue_b8(), (const uint8_t *)p)); }
static inline void raw_store(char *p, raw v) { svst1_u8(svptrue_b8(), (uint8_t *)p, svreinterpret_u8_u32(v)); }
static inline void raw_stream(char *p, raw v) { svstnt1_u8(svptrue_b8(), (uint8_t *)p, svreinterpret_u8_u32(v)); }
static inline void raw_stream_end(void) {}
static inline raw raw_or(raw a, raw b) { return svorr_u32_x(nb_all(), a, b); }
static inline raw raw_opaque(raw v) {
    __asm__ volatile("" : "+w"(v));
    return v;
}

/* Up to 15 elements of 16 bits; those from n on are 0. */
static inline raw nb_load_16_tail(const uint16_t *p, int64_t n) {
    return svreinterpret_u32_u16(svld1_u16(svwhilelt_b16_s64(0, n), p));
}
static inline void nb_store_16_tail(uint16_t *p, raw v, int64_t n) {
    svst1_u16(svwhilelt_b16_s64(0, n), p, svreinterpret_u16_u32(v));
}

static inline __attribute__((always_inline)) void vec_stream_f32(float *p, vec v) { svstnt1_f32(nb_all(), p, v); }
static inline __attribute__((always_inline)) void vec_stream_f16(uint16_t *p, vec v) {
    vec16_store(p, nb_narrow_f16(v)); /* half a register: SVE streams whole ones */
}

static inline float nb_bf16_to_f32(uint16_t h) { return vec_first(nb_widen_bf16(svdup_n_u32(h))); }
static inline uint16_t nb_f32_to_bf16(float f) {
    return (uint16_t)svlasta_u32(svpfalse_b(), nb_narrow_bf16(svdup_n_f32(f)));
}

#include "kernels/simd/halves.h"
