// SPDX-License-Identifier: Apache-2.0
/* Up to 7 elements of 16 bits with AVX2, which masks no finer than 32: pairs by mask, an odd last one by itself. */
#ifndef NB_SIMD_TAIL16_H
#define NB_SIMD_TAIL16_H

#include <immintrin.h>
#include <stdint.h>

static inline __m128i nb_pairs_below(int64_t n) {
    return _mm_cmpgt_epi32(_mm_set1_epi32((int)n), _mm_setr_epi32(0, 1, 2, 3));
}

/* Elements from n on are 0. */
static __attribute__((noinline, unused)) __m128i nb_load_16_tail(const uint16_t *p, int64_t n) {
    __m128i v = _mm_maskload_epi32((const int *)p, nb_pairs_below(n / 2));
    if (n % 2 == 0) return v;
    __m128i here = _mm_cmpeq_epi16(_mm_set1_epi16((short)(n - 1)), _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm_or_si128(v, _mm_and_si128(here, _mm_set1_epi16((short)p[n - 1])));
}

static __attribute__((noinline, unused)) void nb_store_16_tail(uint16_t *p, __m128i v, int64_t n) {
    _mm_maskstore_epi32((int *)p, nb_pairs_below(n / 2), v);
    if (n % 2 == 0) return;
    const short at = (short)(2 * (n - 1)); /* the two bytes of element n - 1 */
    __m128i last = _mm_shuffle_epi8(v, _mm_set1_epi16((short)((at + 1) << 8 | at)));
    p[n - 1] = (uint16_t)_mm_extract_epi16(last, 0);
}

#endif
