// SPDX-License-Identifier: Apache-2.0
/* By definition: the exact product (at most 35 bits, so a double holds it) rounded at once, against the one rounded twice. */
#include "src/lab/exhaustive/double_rounding.h"

#include <string.h>

#include "src/core/cpu.h"
#include "src/core/dtype.h"

struct nb_double_roundings nb_double_roundings_plain(float x, uint32_t first, uint32_t stride, uint32_t n,
                                                     enum nb_dtype dtype) {
    struct nb_double_roundings found = {0};
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t bits = first + i * stride;
        float rstd;
        memcpy(&rstd, &bits, sizeof rstd);
        const double exact = (double)x * (double)rstd;
        if (nb_round_to(exact, dtype) == nb_round_to((double)(float)exact, dtype)) continue;
        if (found.n++ == 0) found.first = bits;
    }
    return found;
}

struct nb_double_roundings nb_double_roundings(float x, uint32_t first, uint32_t stride, uint32_t n,
                                               enum nb_dtype dtype) {
#if defined(__x86_64__)
    if (!nb_cpu_refuses(NB_CPU_AVX2, NB_NATIVE)) return nb_double_roundings_v3(x, first, stride, n, dtype);
#endif
    return nb_double_roundings_plain(x, first, stride, n, dtype);
}

/* ---- Eight products at a time. The second rounding goes wrong only where the first one landed on a tie of the dtype without being
 * exact: p = RN(x rstd) ends in 1000..., e = x rstd - p (exact by FMA) is not 0, and the tie goes up, to even, although the exact
 * product lies below it (e < 0), or down although it lies above. */

#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>

NB_TARGET_BEGIN(NB_TARGET_V3)

struct nb_double_roundings nb_double_roundings_v3(float x, uint32_t first, uint32_t stride, uint32_t n,
                                                  enum nb_dtype dtype) {
    struct nb_double_roundings found = {0};
    const int dropped = 24 - nb_formats[dtype].precision; /* bits that the second rounding drops */
    const __m256i low_bits = _mm256_set1_epi32((1 << dropped) - 1), tie = _mm256_set1_epi32(1 << (dropped - 1));
    const __m128i odd_shift = _mm_cvtsi32_si128(31 - dropped); /* moves the last bit kept to the sign */
    const __m256 xs = _mm256_set1_ps(x), zero = _mm256_setzero_ps();
    const __m256i lane = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)stride));
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i bits = _mm256_add_epi32(_mm256_set1_epi32((int)(first + i * stride)), lane);
        const __m256 rstd = _mm256_castsi256_ps(bits), product = _mm256_mul_ps(xs, rstd);
        const __m256i p = _mm256_castps_si256(product);
        const __m256i on_tie = _mm256_cmpeq_epi32(_mm256_and_si256(p, low_bits), tie);
        if (_mm256_testz_si256(on_tie, on_tie)) continue;
        const __m256 e = _mm256_fmsub_ps(xs, rstd, product);
        const __m256 goes_up = _mm256_castsi256_ps(_mm256_sll_epi32(p, odd_shift));
        /* Wrong: e < 0 where it goes up, e > 0 where it goes down. */
        const __m256 wrong =
            _mm256_blendv_ps(_mm256_cmp_ps(e, zero, _CMP_GT_OQ), _mm256_cmp_ps(e, zero, _CMP_LT_OQ), goes_up);
        const unsigned mask = (unsigned)_mm256_movemask_ps(_mm256_and_ps(wrong, _mm256_castsi256_ps(on_tie)));
        if (mask && found.n == 0) found.first = first + (i + (uint32_t)__builtin_ctz(mask)) * stride;
        found.n += __builtin_popcount(mask);
    }
    const struct nb_double_roundings rest = nb_double_roundings_plain(x, first + i * stride, stride, n - i, dtype);
    if (found.n == 0) found.first = rest.first;
    found.n += rest.n;
    return found;
}

NB_TARGET_END
#endif
