// SPDX-License-Identifier: Apache-2.0
/* Two vectors at a time, PAIR consecutive elements. f32 and f16 lie in them in order; bf16 is split into its even and its odd
 * elements, and so are f32 parameters that meet them (below). Sums do not care.
 *
 *   PAIR_IN_ORDER                           whether they do
 *   pair_load, pair_store, pair_load_f32    any alignment; ..._tail: the first n elements, 0 < n < PAIR, absent ones 0
 *   pair_keep(v, n)                         elements from n on become 0
 *   pair_round                              to the dtype and back */
#pragma once

#include "kernels/shared/reduce.h"

#if defined(NB_DTYPE_IS_BF16) && NB_LANES > 1
/* bf16 by registers of 2 * NB_LANES elements: the odd ones are f32 numbers once the even half of each 32 bits is cleared, the even
 * ones once they are shifted up, so that no shuffle is needed either way. Rounding is done on integers and ignores NaN:
 * the carry can lose one only if its bits from 16 up are all set, which arithmetic on bf16 numbers never makes (a NaN that it makes,
 * or hands on, is quiet and has its low half clear). */

typedef raw bf16_bits;
#if !defined(__x86_64__) || NB_LANES == 4
NB_INLINE bf16_bits bits_load_tail(const elem *p, int64_t n) { return nb_load_16_tail(p, n); }
NB_INLINE void bits_store_tail(elem *p, bf16_bits v, int64_t n) { nb_store_16_tail(p, v, n); }
#endif
#if !defined(__x86_64__) /* by operators, of lanes of 32 bits */
NB_INLINE bf16_bits bits_load(const elem *p) { return raw_load((const char *)p); }
NB_INLINE void bits_store(elem *p, bf16_bits v) { raw_store((char *)p, v); }
NB_INLINE vec bits_even(bf16_bits v) { return (vec)(v << 16); }
NB_INLINE vec bits_odd(bf16_bits v) { return (vec)(v & 0xffff0000u); }
NB_INLINE bf16_bits bits_join(vec even, vec odd) { return (bf16_bits)even >> 16 | ((bf16_bits)odd & 0xffff0000u); }
NB_INLINE vec bits_round(vec v) {
    const bf16_bits u = (bf16_bits)v;
    return (vec)(u + 0x7fffu + (u >> 16 & 1u));
}
#if NB_LANES == 4
NB_INLINE vec even_lanes(vec a, vec b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6); }
NB_INLINE vec odd_lanes(vec a, vec b) { return __builtin_shufflevector(a, b, 1, 3, 5, 7); }
#else
NB_INLINE vec even_lanes(vec a, vec b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14); }
NB_INLINE vec odd_lanes(vec a, vec b) { return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15); }
#endif
#else
NB_INLINE bf16_bits bits_load(const elem *p) { return NB_RAW(loadu)((const raw *)p); }
NB_INLINE void bits_store(elem *p, bf16_bits v) { NB_RAW(storeu)((raw *)p, v); }
NB_INLINE vec bits_even(bf16_bits v) { return (vec)NB_VEC(slli_epi32)(v, 16); }
NB_INLINE vec bits_odd(bf16_bits v) { return (vec)NB_RAW(and)(v, NB_VEC(set1_epi32)((int)0xffff0000u)); }
#if NB_LANES == 16
NB_INLINE __mmask32 bits_below(int64_t n) { return (__mmask32)_bzhi_u32(0xffffffffu, (unsigned)n); }
NB_INLINE bf16_bits bits_load_tail(const elem *p, int64_t n) { return _mm512_maskz_loadu_epi16(bits_below(n), p); }
NB_INLINE void bits_store_tail(elem *p, bf16_bits v, int64_t n) { _mm512_mask_storeu_epi16(p, bits_below(n), v); }
/* The upper halves of each, interleaved. */
NB_INLINE bf16_bits bits_join(vec even, vec odd) {
    const __m512i low = _mm512_srli_epi32(_mm512_castps_si512(even), 16), upper = _mm512_set1_epi32((int)0xffff0000u);
    return _mm512_ternarylogic_epi32(low, _mm512_castps_si512(odd), upper, 0xf8); /* low | (odd & upper) */
}
/* What makes the upper half right, to nearest even: half a unit is added, less one bit where the unit is even. */
NB_INLINE vec bits_round(vec v) {
    const __m512i u = _mm512_castps_si512(v);
    const __mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000));
    const __m512i rounded = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
    return _mm512_castsi512_ps(_mm512_mask_add_epi32(rounded, odd, u, _mm512_set1_epi32(0x8000)));
}
NB_INLINE vec even_lanes(vec a, vec b) {
    const __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, at, b);
}
NB_INLINE vec odd_lanes(vec a, vec b) {
    const __m512i at = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, at, b);
}
#else
NB_INLINE bf16_bits bits_join(vec even, vec odd) {
    return NB_VEC(blend_epi16)(NB_VEC(srli_epi32)((raw)even, 16), (raw)odd, 0xaa);
}
NB_INLINE vec bits_round(vec v) {
    const raw u = (raw)v, parity = NB_RAW(and)(NB_VEC(srli_epi32)(u, 16), NB_VEC(set1_epi32)(1));
    return (vec)NB_VEC(add_epi32)(NB_VEC(add_epi32)(u, NB_VEC(set1_epi32)(0x7fff)), parity);
}
#if NB_LANES == 4
NB_INLINE vec even_lanes(vec a, vec b) { return _mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)); }
NB_INLINE vec odd_lanes(vec a, vec b) { return _mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)); }
#else
NB_INLINE bf16_bits bits_load_tail(const elem *p, int64_t n) {
    if (n < 8) return _mm256_zextsi128_si256(nb_load_16_tail(p, n));
    const __m128i low = _mm_loadu_si128((const __m128i *)p);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), nb_load_16_tail(p + 8, n - 8), 1);
}
NB_INLINE void bits_store_tail(elem *p, bf16_bits v, int64_t n) {
    if (n < 8) {
        nb_store_16_tail(p, _mm256_castsi256_si128(v), n);
        return;
    }
    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(v));
    nb_store_16_tail(p + 8, _mm256_extracti128_si256(v, 1), n - 8);
}
/* Within halves by one shuffle, then the quarters into place. */
NB_INLINE vec in_order(vec v) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), _MM_SHUFFLE(3, 1, 2, 0)));
}
NB_INLINE vec even_lanes(vec a, vec b) { return in_order(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0))); }
NB_INLINE vec odd_lanes(vec a, vec b) { return in_order(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1))); }
#endif
#endif
#endif
NB_INLINE vec bits_upper(vec v) { return bits_odd((bf16_bits)v); }
#endif

/* PAIR_ROUNDS_UP: rounding half up takes six operations for a pair of bf16 where rounding to nearest even takes ten, and differs from it
 * in ties alone, values half way between two bf16 numbers. These have a lower half of 0 once half a unit is added. struct ties gathers the
 * least lower halves (and upper ones, which say nothing); where ties_met() has found a 0, what was stored since must be stored again, to
 * nearest even. NaN as above. */
#if defined(NB_DTYPE_IS_BF16) && defined(__x86_64__) && (NB_LANES == 4 || NB_LANES == 8)
#define PAIR_ROUNDS_UP 1
struct ties {
    bf16_bits least;
};
NB_INLINE struct ties ties_none(void) { return (struct ties){NB_VEC(set1_epi32)(-1)}; }
NB_INLINE bool ties_met(struct ties t) {
    const int zero = NB_VEC(movemask_epi8)(NB_VEC(cmpeq_epi16)(t.least, NB_RAW(setzero)()));
    return (zero & (0x33333333 >> (32 - 4 * NB_LANES))) != 0;
}
NB_INLINE bf16_bits bits_join_up(vec even, vec odd, struct ties *t) {
    const raw half = NB_VEC(set1_epi32)(0x8000);
    const raw a = NB_VEC(add_epi32)((raw)even, half), b = NB_VEC(add_epi32)((raw)odd, half);
    t->least = NB_VEC(min_epu16)(t->least, NB_VEC(min_epu16)(a, b));
    return bits_join((vec)a, (vec)b);
}
#else
#define PAIR_ROUNDS_UP 0
struct ties {
    char unused;
};
NB_INLINE struct ties ties_none(void) { return (struct ties){0}; }
NB_INLINE bool ties_met(struct ties t) { return false; }
#endif

#define PAIR (2 * NB_LANES)

struct pair {
    vec a, b;
};

/* Of floats in order. */
NB_INLINE struct pair floats_load(const float *p) { return (struct pair){vec_load_f32(p), vec_load_f32(p + NB_LANES)}; }
NB_INLINE struct pair floats_load_tail(const float *p, int64_t n) {
    if (n < NB_LANES) return (struct pair){vec_load_f32_tail(p, n), vec_set1(0.0f)};
    return (struct pair){vec_load_f32(p), vec_load_f32_tail(p + NB_LANES, n - NB_LANES)};
}

#if defined(NB_DTYPE_IS_BF16) && NB_LANES > 1
#define PAIR_IN_ORDER 0

NB_INLINE struct pair pair_split(bf16_bits v) { return (struct pair){bits_even(v), bits_odd(v)}; }
NB_INLINE bf16_bits pair_join(struct pair v) { return bits_join(bits_round(v.a), bits_round(v.b)); }
NB_INLINE struct pair pair_load(const elem *p) { return pair_split(bits_load(p)); }
NB_INLINE struct pair pair_load_tail(const elem *p, int64_t n) { return pair_split(bits_load_tail(p, n)); }
NB_INLINE void pair_store(elem *p, struct pair v) { bits_store(p, pair_join(v)); }
NB_INLINE void pair_store_tail(elem *p, struct pair v, int64_t n) { bits_store_tail(p, pair_join(v), n); }
NB_INLINE struct pair pair_round(struct pair v) {
    return (struct pair){bits_upper(bits_round(v.a)), bits_upper(bits_round(v.b))};
}
NB_INLINE struct pair pair_keep(struct pair v, int64_t n) {
    return (struct pair){vec_keep(v.a, (n + 1) / 2), vec_keep(v.b, n / 2)};
}
NB_INLINE struct pair pair_of_floats(struct pair v) { return (struct pair){even_lanes(v.a, v.b), odd_lanes(v.a, v.b)}; }
#else
#define PAIR_IN_ORDER 1
NB_INLINE struct pair pair_load(const elem *p) { return (struct pair){vec_load(p), vec_load(p + NB_LANES)}; }
NB_INLINE struct pair pair_load_tail(const elem *p, int64_t n) {
    if (n < NB_LANES) return (struct pair){vec_load_tail(p, n), vec_set1(0.0f)};
    return (struct pair){vec_load(p), vec_load_tail(p + NB_LANES, n - NB_LANES)};
}
NB_INLINE void pair_store(elem *p, struct pair v) {
    vec_store(p, v.a);
    vec_store(p + NB_LANES, v.b);
}
NB_INLINE void pair_store_tail(elem *p, struct pair v, int64_t n) {
    if (n < NB_LANES) {
        vec_store_tail(p, v.a, n);
        return;
    }
    vec_store(p, v.a);
    vec_store_tail(p + NB_LANES, v.b, n - NB_LANES);
}
NB_INLINE struct pair pair_round(struct pair v) { return (struct pair){vec_round(v.a), vec_round(v.b)}; }
NB_INLINE struct pair pair_keep(struct pair v, int64_t n) {
    return (struct pair){vec_keep(v.a, n), vec_keep(v.b, n > NB_LANES ? n - NB_LANES : 0)};
}
NB_INLINE struct pair pair_of_floats(struct pair v) { return v; }
#endif

#if defined(NB_DTYPE_IS_BF16) && defined(__x86_64__) && NB_LANES == 8
/* As floats_load and pair_of_floats do; loads that bring the quarters into place leave one shuffle for each half. */
NB_INLINE vec quarters_load(const float *p) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 8), 1);
}
NB_INLINE struct pair pair_load_f32(const float *p) {
    const vec a = quarters_load(p), b = quarters_load(p + 4);
    return (struct pair){_mm256_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)),
                         _mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1))};
}
#else
NB_INLINE struct pair pair_load_f32(const float *p) { return pair_of_floats(floats_load(p)); }
#endif
NB_INLINE struct pair pair_load_f32_tail(const float *p, int64_t n) { return pair_of_floats(floats_load_tail(p, n)); }
