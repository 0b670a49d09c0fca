// SPDX-License-Identifier: Apache-2.0
/* Two vectors at a time, PAIR consecutive elements. f32 and f16 lie in them in order; bf16 is split into its even and its odd
 * elements, and so are f32 parameters that meet them (pair_bf16.h). Sums do not care.
 *
 *   PAIR_IN_ORDER                           whether they do
 *   pair_load, pair_store, pair_load_f32    any alignment; ..._tail: the first n elements, 0 < n < PAIR, absent ones 0
 *   pair_keep(v, n)                         elements from n on become 0
 *   pair_round                              to the dtype and back */
#ifndef NB_PAIR_H
#define NB_PAIR_H

#include "kernels/shared/reduce.h"

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
#include "kernels/shared/pair_bf16.h"
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

NB_INLINE struct pair pair_load_f32(const float *p) { return pair_of_floats(floats_load(p)); }
NB_INLINE struct pair pair_load_f32_tail(const float *p, int64_t n) { return pair_of_floats(floats_load_tail(p, n)); }

#endif
