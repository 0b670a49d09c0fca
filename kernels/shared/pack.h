// SPDX-License-Identifier: Apache-2.0
/* A pack: the columns that one iteration of a loop takes, in f32. One vector; for bf16 two, the even and the odd elements of a full register,
 * which a shift and a mask make f32 of (pair.h). A kernel's own arrays over columns (PACK 2) keep that order, and have room for
 * whole packs.
 * Stores of bf16 packs take every NaN for one whose low 16 bits are 0, as those of widened elements and those that
 * arithmetic makes are: pack_quiet() and quiet() make one of any other. */
#pragma once

#include <string.h>

#include "kernels/shared/pair_native.h"

#if defined(NB_DTYPE_IS_BF16) && NB_LANES > 1
#define PACK 2
#else
#define PACK 1
#endif
#define PACK_COLUMNS (PACK * NB_LANES)

struct pack {
    vec v[PACK];
};

/* Keeps a vector that is used twice from being loaded twice, as an operand of each instruction. */
NB_INLINE vec vec_once(vec v) {
#if defined(__x86_64__)
    __asm__("" : "+" NB_REGISTER(v));
#endif
    return v;
}
NB_INLINE struct pack pack_once(struct pack a) {
    NB_UNROLL
    for (int i = 0; i < PACK; i++) a.v[i] = vec_once(a.v[i]);
    return a;
}

static inline float quiet(float f) { return PACK > 1 && f != f ? __builtin_nanf("") : f; }

#if PACK == 2
#if NB_LANES == 4
#define LOW_LANES 0, 4, 1, 5
#define HIGH_LANES 2, 6, 3, 7
#elif NB_LANES == 8
#define LOW_LANES 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_LANES 4, 12, 5, 13, 6, 14, 7, 15
#else
#define LOW_LANES 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_LANES 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#endif

NB_INLINE struct pack pack_quiet(struct pack a) {
    typedef uint32_t bits __attribute__((vector_size(sizeof(vec))));
    NB_UNROLL
    for (int i = 0; i < PACK; i++) {
        const bits nan = (bits)(a.v[i] != a.v[i]);
        a.v[i] = (vec)(((bits)a.v[i] & ~(nan & 0xffffu)) | (nan & 0x400000u));
    }
    return a;
}

/* Elements, any alignment (pack_stream: non-temporal, of a register's); ..._tail: the first n
 * of a pack, 0 < n < PACK_COLUMNS, absent ones load as 0. */
NB_INLINE bf16_bits bits_once(bf16_bits v) {
#if defined(__x86_64__)
    __asm__("" : "+" NB_REGISTER(v));
#endif
    return v;
}
NB_INLINE struct pack pack_split(bf16_bits both) { return (struct pack){{bits_even(both), bits_odd(both)}}; }
NB_INLINE bf16_bits pack_join(struct pack a) { return bits_join(bits_round(a.v[0]), bits_round(a.v[1])); }
NB_INLINE struct pack pack_load(const elem *p) { return pack_split(bits_once(bits_load(p))); }
NB_INLINE struct pack pack_load_tail(const elem *p, int64_t n) { return pack_split(bits_load_tail(p, n)); }
NB_INLINE void pack_store(elem *p, struct pack a) { bits_store(p, pack_join(a)); }
NB_INLINE void pack_store_tail(elem *p, struct pack a, int64_t n) { bits_store_tail(p, pack_join(a), n); }

NB_INLINE void pack_stream(elem *p, struct pack a) { raw_stream((char *)p, pack_join(a)); }

/* f32 in the order of packs; the tail of an array of the kernel's own is a whole pack. */
NB_INLINE struct pack pack_load_f32(const float *p) {
    return (struct pack){{vec_load_f32(p), vec_load_f32(p + NB_LANES)}};
}
NB_INLINE void pack_store_f32(float *p, struct pack a) {
    vec_store_f32(p, a.v[0]);
    vec_store_f32(p + NB_LANES, a.v[1]);
}
NB_INLINE struct pack pack_load_f32_tail(const float *p, int64_t n) { return pack_load_f32(p); }
NB_INLINE void pack_store_f32_tail(float *p, struct pack a, int64_t n) { pack_store_f32(p, a); }

/* f32 columns in their own order -> a pack, and back. */
NB_INLINE struct pack pack_of_pair(struct pair a) { return (struct pack){{a.a, a.b}}; }
NB_INLINE struct pack pack_gather(const float *p) { return pack_of_pair(pair_load_f32(p)); }
NB_INLINE struct pack pack_gather_tail(const float *p, int64_t n) { return pack_of_pair(pair_load_f32_tail(p, n)); }
NB_INLINE void pack_scatter(float *p, struct pack a) {
    vec_store_f32(p, __builtin_shufflevector(a.v[0], a.v[1], LOW_LANES));
    vec_store_f32(p + NB_LANES, __builtin_shufflevector(a.v[0], a.v[1], HIGH_LANES));
}
NB_INLINE void pack_scatter_tail(float *p, struct pack a, int64_t n) {
    float all[PACK_COLUMNS];
    pack_scatter(all, a);
    memcpy(p, all, (size_t)n * sizeof(float));
}
#else
NB_INLINE struct pack pack_quiet(struct pack a) { return a; }
NB_INLINE struct pack pack_load(const elem *p) { return (struct pack){{vec_load(p)}}; }
NB_INLINE struct pack pack_load_tail(const elem *p, int64_t n) { return (struct pack){{vec_load_tail(p, n)}}; }
NB_INLINE void pack_store(elem *p, struct pack a) { vec_store(p, a.v[0]); }
NB_INLINE void pack_store_tail(elem *p, struct pack a, int64_t n) { vec_store_tail(p, a.v[0], n); }
#if NB_LANES > 1 || (defined(__x86_64__) && defined(NB_DTYPE_IS_F32))
NB_INLINE void pack_stream(elem *p, struct pack a) { vec_stream(p, a.v[0]); }
#else
NB_INLINE void pack_stream(elem *p, struct pack a) { pack_store(p, a); }
#endif
NB_INLINE struct pack pack_load_f32(const float *p) { return (struct pack){{vec_load_f32(p)}}; }
NB_INLINE void pack_store_f32(float *p, struct pack a) { vec_store_f32(p, a.v[0]); }
NB_INLINE struct pack pack_load_f32_tail(const float *p, int64_t n) { return (struct pack){{vec_load_f32_tail(p, n)}}; }
NB_INLINE void pack_store_f32_tail(float *p, struct pack a, int64_t n) { vec_store_f32_tail(p, a.v[0], n); }
NB_INLINE struct pack pack_gather(const float *p) { return pack_load_f32(p); }
NB_INLINE struct pack pack_gather_tail(const float *p, int64_t n) { return pack_load_f32_tail(p, n); }
NB_INLINE void pack_scatter(float *p, struct pack a) { pack_store_f32(p, a); }
NB_INLINE void pack_scatter_tail(float *p, struct pack a, int64_t n) { pack_store_f32_tail(p, a, n); }
#endif

/* The lanes of vector i of a pack that belong to its first `columns` columns keep v, the others are 0. */
NB_INLINE vec pack_keep(vec v, int i, int64_t columns) {
    const int64_t n = (columns + PACK - 1 - i) / PACK;
    if (n <= 0) return vec_set1(0.0f);
    if (n >= NB_LANES) return v;
    return vec_keep(v, n);
}
