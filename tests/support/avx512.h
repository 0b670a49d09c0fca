// SPDX-License-Identifier: Apache-2.0
/* What the AVX-512 instructions of the kernels do, in C: with it before each of them (make check-avx512) kernels of 512 bits run on any CPU
 * with AVX2. Right, not fast. An instruction that is missing here does not compile. */
#pragma once

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define NB_REGISTER "m" /* where a vector is that an asm hides from the compiler */

typedef union {
    __m512 ps;
    __m512i si;
    __m256 half_ps[2];
    __m256i half_si[2];
    __m128i quarter[4];
    float f[16];
    uint32_t u[16];
    int32_t i[16];
    uint16_t h[32];
    int16_t s[32];
    int8_t b[64];
} bits512;

// clang-format off
/* mm512_OP(..) is _mm512_OP(..), in whose place it is put behind this file. */
#define IN_C(type, name, ...) static inline __attribute__((always_inline, unused)) type mm512_##name(__VA_ARGS__)
#define EACH(n) for (int k = 0; k < (n); k++)
/* Lane k of n, in a member of the union, becomes value. */
#define LANES(n, lane, value) bits512 r; EACH(n) r.lane[k] = (value)
#define PS(v) ((bits512){.ps = (v)})
#define SI(v) ((bits512){.si = (v)})
#define BIT_OF(mask) ((mask) >> k & 1)

static inline int c_clamp(int v, int low, int high) { return v < low ? low : v > high ? high : v; }
static inline uint32_t c_bits(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static inline float c_float(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static inline void c_wants_line(const void *p) {
    if ((uintptr_t)p % 64) __builtin_trap(); /* as the instruction faults */
}

/* Constants and casts. */
IN_C(__m512, set1_ps, float x) { LANES(16, f, x); return r.ps; }
IN_C(__m512i, set1_epi32, int x) { LANES(16, i, x); return r.si; }
IN_C(__m512i, set1_epi16, short x) { LANES(32, s, x); return r.si; }
/* Lane 0 last, and first. */
#define mm512_set_epi16(...) mm512_reversed((const int16_t[]){__VA_ARGS__})
#define mm512_setr_epi32(...) (((bits512){.i = {__VA_ARGS__}}).si)
IN_C(__m512i, reversed, const int16_t *from) { LANES(32, s, from[31 - k]); return r.si; }
IN_C(__m512i, castps_si512, __m512 a) { return PS(a).si; }
IN_C(__m512, castsi512_ps, __m512i a) { return SI(a).ps; }
IN_C(__m256, castps512_ps256, __m512 a) { return PS(a).half_ps[0]; }
IN_C(__m256, extractf32x8_ps, __m512 a, int n) { return PS(a).half_ps[n]; }
IN_C(float, cvtss_f32, __m512 a) { return PS(a).f[0]; }

/* Memory. */
IN_C(__m512, loadu_ps, const void *p) { bits512 r; memcpy(&r, p, 64); return r.ps; }
IN_C(__m512i, loadu_si512, const void *p) { bits512 r; memcpy(&r, p, 64); return r.si; }
IN_C(void, storeu_ps, void *p, __m512 a) { memcpy(p, &a, 64); }
IN_C(void, storeu_si512, void *p, __m512i a) { memcpy(p, &a, 64); }
IN_C(void, stream_ps, void *p, __m512 a) { c_wants_line(p); memcpy(p, &a, 64); }
IN_C(void, stream_si512, void *p, __m512i a) { c_wants_line(p); memcpy(p, &a, 64); }
IN_C(__m512, maskz_loadu_ps, __mmask16 m, const float *p) { LANES(16, f, BIT_OF(m) ? p[k] : 0); return r.ps; }
IN_C(__m512i, maskz_loadu_epi16, __mmask32 m, const void *p) { LANES(32, h, BIT_OF(m) ? ((const uint16_t *)p)[k] : 0); return r.si; }
IN_C(void, mask_storeu_ps, float *p, __mmask16 m, __m512 a) { EACH(16) if (BIT_OF(m)) p[k] = PS(a).f[k]; }
IN_C(void, mask_storeu_epi16, void *p, __mmask32 m, __m512i a) { EACH(32) if (BIT_OF(m))((uint16_t *)p)[k] = SI(a).h[k]; }

/* Arithmetic of f32. */
IN_C(__m512, fmadd_ps, __m512 a, __m512 b, __m512 c) {
    bits512 r;
    EACH(2) r.half_ps[k] = _mm256_fmadd_ps(PS(a).half_ps[k], PS(b).half_ps[k], PS(c).half_ps[k]);
    return r.ps;
}
IN_C(__m512, sqrt_ps, __m512 a) { bits512 r; EACH(2) r.half_ps[k] = _mm256_sqrt_ps(PS(a).half_ps[k]); return r.ps; }
IN_C(__m512, min_ps, __m512 a, __m512 b) { LANES(16, f, PS(a).f[k] < PS(b).f[k] ? PS(a).f[k] : PS(b).f[k]); return r.ps; }
IN_C(__m512, max_ps, __m512 a, __m512 b) { LANES(16, f, PS(a).f[k] > PS(b).f[k] ? PS(a).f[k] : PS(b).f[k]); return r.ps; }
IN_C(__mmask16, cmp_ps_mask, __m512 a, __m512 b, int how) {
    unsigned m = 0;
    EACH(16) {
        const float x = PS(a).f[k], y = PS(b).f[k];
        if (how != _CMP_LT_OQ && how != _CMP_UNORD_Q) __builtin_trap();
        m |= (unsigned)(how == _CMP_LT_OQ ? x < y : x != x || y != y) << k;
    }
    return (__mmask16)m;
}

/* Integers and bits. */
IN_C(__m512i, add_epi32, __m512i a, __m512i b) { LANES(16, u, SI(a).u[k] + SI(b).u[k]); return r.si; }
IN_C(__m512i, add_epi16, __m512i a, __m512i b) { LANES(32, h, (uint16_t)(SI(a).h[k] + SI(b).h[k])); return r.si; }
IN_C(__m512i, slli_epi32, __m512i a, unsigned n) { LANES(16, u, SI(a).u[k] << n); return r.si; }
IN_C(__m512i, srli_epi32, __m512i a, unsigned n) { LANES(16, u, SI(a).u[k] >> n); return r.si; }
IN_C(__m512i, and_si512, __m512i a, __m512i b) { LANES(16, u, SI(a).u[k] & SI(b).u[k]); return r.si; }
IN_C(__m512i, or_si512, __m512i a, __m512i b) { LANES(16, u, SI(a).u[k] | SI(b).u[k]); return r.si; }
IN_C(__m512, and_ps, __m512 a, __m512 b) { LANES(16, u, PS(a).u[k] & PS(b).u[k]); return r.ps; }
IN_C(__m512, or_ps, __m512 a, __m512 b) { LANES(16, u, PS(a).u[k] | PS(b).u[k]); return r.ps; }
IN_C(__m512, andnot_ps, __m512 a, __m512 b) { LANES(16, u, ~PS(a).u[k] & PS(b).u[k]); return r.ps; }
IN_C(__m512i, ternarylogic_epi32, __m512i a, __m512i b, __m512i c, int table) {
    bits512 r = {0};
    EACH(16) for (int bit = 0; bit < 32; bit++) {
        const unsigned at = (SI(a).u[k] >> bit & 1) << 2 | (SI(b).u[k] >> bit & 1) << 1 | (SI(c).u[k] >> bit & 1);
        r.u[k] |= ((unsigned)table >> at & 1) << bit;
    }
    return r.si;
}
IN_C(__mmask16, test_epi32_mask, __m512i a, __m512i b) {
    unsigned m = 0;
    EACH(16) m |= (unsigned)((SI(a).u[k] & SI(b).u[k]) != 0) << k;
    return (__mmask16)m;
}
IN_C(__mmask64, movepi8_mask, __m512i a) { uint64_t m = 0; EACH(64) m |= (uint64_t)(SI(a).b[k] < 0) << k; return m; }

/* Lanes that a mask names; the others are another vector's, or 0. */
IN_C(__m512, mask_mov_ps, __m512 other, __mmask16 m, __m512 a) { LANES(16, f, BIT_OF(m) ? PS(a).f[k] : PS(other).f[k]); return r.ps; }
IN_C(__m512, maskz_mov_ps, __mmask16 m, __m512 a) { LANES(16, f, BIT_OF(m) ? PS(a).f[k] : 0); return r.ps; }
IN_C(__m512i, mask_or_epi32, __m512i other, __mmask16 m, __m512i a, __m512i b) {
    LANES(16, u, BIT_OF(m) ? SI(a).u[k] | SI(b).u[k] : SI(other).u[k]);
    return r.si;
}
IN_C(__m512i, mask_add_epi32, __m512i other, __mmask16 m, __m512i a, __m512i b) {
    LANES(16, u, BIT_OF(m) ? SI(a).u[k] + SI(b).u[k] : SI(other).u[k]);
    return r.si;
}

/* Lanes elsewhere. */
IN_C(__m512, permutex2var_ps, __m512 a, __m512i at, __m512 b) {
    LANES(16, f, SI(at).u[k] & 16 ? PS(b).f[SI(at).u[k] & 15] : PS(a).f[SI(at).u[k] & 15]);
    return r.ps;
}
IN_C(__m512i, permutexvar_epi16, __m512i at, __m512i a) { LANES(32, h, SI(a).h[SI(at).h[k] & 31]); return r.si; }
IN_C(__m512i, maskz_permutexvar_epi16, __mmask32 m, __m512i at, __m512i a) {
    LANES(32, h, BIT_OF(m) ? SI(a).h[SI(at).h[k] & 31] : 0);
    return r.si;
}

/* Conversions: within each quarter four, or eight, of a before those of b. */
IN_C(__m512i, packs_epi32, __m512i a, __m512i b) {
    LANES(32, s,
          (int16_t)c_clamp(k % 8 < 4 ? SI(a).i[k / 8 * 4 + k % 4] : SI(b).i[k / 8 * 4 + k % 4], INT16_MIN, INT16_MAX));
    return r.si;
}
IN_C(__m512i, packs_epi16, __m512i a, __m512i b) {
    LANES(64, b,
          (int8_t)c_clamp(k % 16 < 8 ? SI(a).s[k / 16 * 8 + k % 8] : SI(b).s[k / 16 * 8 + k % 8], INT8_MIN, INT8_MAX));
    return r.si;
}
IN_C(__m512i, cvtepu16_epi32, __m256i a) { LANES(16, u, ((bits512){.half_si[0] = a}).h[k]); return r.si; }
IN_C(__m256i, cvtepi32_epi16, __m512i a) { LANES(16, h, (uint16_t)SI(a).u[k]); return r.half_si[0]; }
IN_C(__m512, cvtph_ps, __m256i a) { bits512 r; EACH(2) r.half_ps[k] = _mm256_cvtph_ps(((bits512){.half_si[0] = a}).quarter[k]); return r.ps; }
IN_C(__m256i, cvtps_ph, __m512 a, int how) {
    bits512 r;
    if (how != _MM_FROUND_TO_NEAREST_INT) __builtin_trap();
    EACH(2) r.quarter[k] = _mm256_cvtps_ph(PS(a).half_ps[k], _MM_FROUND_TO_NEAREST_INT);
    return r.half_si[0];
}

/* Of 256 bits and of one element. */
IN_C(__m256i, maskz_loadu_epi16_256, __mmask16 m, const void *p) {
    LANES(16, h, BIT_OF(m) ? ((const uint16_t *)p)[k] : 0);
    return r.half_si[0];
}
IN_C(void, mask_storeu_epi16_256, void *p, __mmask16 m, __m256i a) {
    EACH(16) if (BIT_OF(m))((uint16_t *)p)[k] = ((bits512){.half_si[0] = a}).h[k];
}
/* 14 bits, cut off. */
IN_C(__m128, rsqrt14_ss, __m128 upper, __m128 v) {
    const float root = 1.0f / sqrtf(_mm_cvtss_f32(v));
    return _mm_move_ss(upper, _mm_set_ss(root - root == 0 ? c_float(c_bits(root) & ~0x1ffu) : root));
}

/* AVX512-BF16, which takes subnormal numbers for 0 and gives none, whatever the mode; in place of pair_native.h's. */
#define NB_BF16_IN_C
static inline float c_flushed(float f) { return __builtin_fabsf(f) < 0x1p-126f ? __builtin_copysignf(0.0f, f) : f; }
static inline uint16_t c_narrowed(float f) {
    const uint32_t u = c_bits(c_flushed(f));
    return (uint16_t)((f != f ? u | 0x400000 : u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static inline __attribute__((unused)) __m512i bits_narrow(__m512 a, __m512 b) {
    LANES(32, h, c_narrowed(k < 16 ? PS(a).f[k] : PS(b).f[k - 16]));
    return r.si;
}
static inline __attribute__((unused)) __m512 bits_squares(__m512 sum, __m512i v) {
    bits512 r = PS(sum);
    EACH(32) {
        const int odd_first = k ^ 1;
        const float x = c_flushed(c_float((uint32_t)SI(v).h[odd_first] << 16));
        r.f[k / 2] = c_flushed(fmaf(x, x, r.f[k / 2]));
    }
    return r.ps;
}

/* Those whose name is not _mm512_ and theirs here; of the others the build makes a list (in_c_names in the Makefile). */
#define _mm256_maskz_loadu_epi16 mm512_maskz_loadu_epi16_256
#define _mm256_mask_storeu_epi16 mm512_mask_storeu_epi16_256
#define _mm_rsqrt14_ss mm512_rsqrt14_ss
#define _mm512_set_epi16 mm512_set_epi16
#undef _mm512_setr_epi32
#define _mm512_setr_epi32 mm512_setr_epi32
