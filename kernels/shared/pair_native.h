// SPDX-License-Identifier: Apache-2.0
/* bf16 with AVX512-BF16, which a call's tuning allows: elements stay in order, since one instruction rounds two vectors to one
 * register, and takes NaN as it should. It takes subnormal numbers for 0 (NB_FLAG_FLUSHES). The instructions are written
 * out, so that one object serves CPUs with them and without.
 *
 *   PAIR_NATIVE                    are there any for this width and dtype?
 *   ordered_load, ordered_store    a pair in order, which the rest of pair.h keeps where PAIR_IN_ORDER alone; ..._tail as there
 *   bits_narrow(a, b)              a in the lower half
 *   bits_squares(sum, v)           to each lane the squares of two elements are added, one after the other */
#pragma once

#include "kernels/shared/stream.h"

#if defined(NB_DTYPE_IS_BF16) && NB_LANES == 16
#define PAIR_NATIVE 1

#ifndef NB_BF16_IN_C /* tests/support/avx512.h has them */
NB_INLINE bf16_bits bits_narrow(vec a, vec b) {
    bf16_bits r;
    __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(r) : "v"(a), "v"(b));
    return r;
}
NB_INLINE vec bits_squares(vec sum, bf16_bits v) {
    __asm__("vdpbf16ps %1, %1, %0" : "+v"(sum) : "v"(v));
    return sum;
}
#endif
/* One shuffle widens: elements go to the upper halves, zeros to the lower ones. */
NB_INLINE struct pair bits_ordered(bf16_bits v) {
    const __m512i low = _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4, 0,
                                         3, 0, 2, 0, 1, 0, 0, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    const __mmask32 upper = 0xaaaaaaaau;
    return (struct pair){_mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(upper, low, v)),
                         _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(upper, high, v))};
}
/* Of even and odd elements. */
NB_INLINE bf16_bits bits_narrow_split(struct pair v) {
    const __m512i in_turn = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                             21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(in_turn, bits_narrow(v.a, v.b));
}
NB_INLINE struct pair ordered_load(const elem *p) { return bits_ordered(raw_opaque(bits_load(p))); }
NB_INLINE struct pair ordered_load_tail(const elem *p, int64_t n) { return bits_ordered(bits_load_tail(p, n)); }
NB_INLINE void ordered_store(elem *p, struct pair v) { bits_store(p, bits_narrow(v.a, v.b)); }
NB_INLINE void ordered_store_tail(elem *p, struct pair v, int64_t n) { bits_store_tail(p, bits_narrow(v.a, v.b), n); }
#else
#define PAIR_NATIVE 0
#endif

/* With the cast before the weight there are roundings on the way as well, and all are made on integers. */
static inline bool call_is_native(const struct nb_call *call) {
    const bool allowed = PAIR_NATIVE && call->tuning && (call->tuning->native & NB_CPU_AVX512BF16);
    return allowed && (call->formula.cast == NB_CAST_AFTER || call->formula.affine == NB_AFFINE_NONE);
}
