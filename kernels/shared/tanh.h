// SPDX-License-Identifier: Apache-2.0
/* tanh of a vector: at most 2.1 ulp by the derivation below, at most 1.34 ulp over all floats as measured (at 0x1.43183ap-1).
 *
 *   |z| < 0.625:  z + z s P(s), s = z^2; P by Remez for the relative error of the whole, 2^-27.8.
 *   else:         1 - 2 / (e + 1), e = e^(2 z), 2 z = k ln 2 + 2 r, |2 r| <= ln(2) / 2, and e^(2 r) by Remez to 2^-28.1.
 *
 * Below 0.625 the last fma rounds by 1/2 ulp, and the correction, at most 0.12 of the result, brings 3 u of its own (u = 2^-24).
 * Above, d = 2 / (e + 1) <= 0.446 carries the relative errors of e (1.6 u by r, the polynomial and its last addition), of e + 1
 * and of the division (u each): 3.6 u d <= 1.6 u, where an ulp of the result, at least 0.554, is u; the subtraction adds 1/2.
 * From |z| = 9.02 on the result is 1. NaN stays NaN, and the sign of zero is kept. */
#pragma once

#include "kernels/shared/reduce.h"

NB_INLINE vec tanh_small(vec z) {
    const vec s = z * z;
    vec p = vec_set1(-0x1.767a14p-8f);
    p = vec_fma(p, s, vec_set1(0x1.524c40p-6f));
    p = vec_fma(p, s, vec_set1(-0x1.b842c4p-5f));
    p = vec_fma(p, s, vec_set1(0x1.11075ep-3f));
    p = vec_fma(p, s, vec_set1(-0x1.555534p-2f));
    return vec_fma(z * s, p, z);
}

NB_INLINE vec tanh_large(vec z) {
    const vec magic = vec_set1(0x1.8p23f); /* adding it rounds to an integer, which is in the low bits */
    const vec t = vec_fma(z, vec_set1(0x1.715476p+1f), magic);
    const vec k = t - magic;
    vec r = vec_fma(k, vec_set1(-0x1.62e430p-2f), z); /* ln(2) / 2, high and low part */
    r = vec_fma(k, vec_set1(0x1.05c610p-30f), r);
    const vec q = r + r, q2 = q * q;
    vec p = vec_set1(0x1.6cea6cp-10f);
    p = vec_fma(p, q, vec_set1(0x1.123f20p-7f));
    p = vec_fma(p, q, vec_set1(0x1.55552ap-5f));
    p = vec_fma(p, q, vec_set1(0x1.55548ap-3f));
    p = vec_fma(p, q, vec_set1(0.5f));
    p = vec_fma(p, q2, q) + vec_set1(1.0f);
    const vec e_plus_1 = vec_fma(vec_pow2(t), p, vec_set1(1.0f));
    return vec_set1(1.0f) - vec_set1(2.0f) / e_plus_1;
}

NB_INLINE vec vec_tanh(vec x) {
    const vec z = vec_abs(x);
    const vec large = tanh_large(vec_min(vec_set1(9.2f), z)); /* of a NaN: NaN */
    return vec_copysign(vec_select_less(z, vec_set1(0.625f), tanh_small(z), large), x);
}
