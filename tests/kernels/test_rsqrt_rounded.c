// SPDX-License-Identifier: Apache-2.0
/* 1 / sqrt(v) by two roundings in double and one to f32, as kernels/cuda/emulated.h has it, is 1 / sqrt(v) rounded once: for every f32 of two
 * binades, and with them of all. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

/* Is 1 / sqrt(v) below (-1), at (0) or above (1) c 2^-26? v = m 2^-23: m c^2 against 2^75. */
static int side(uint32_t m, uint64_t c) {
    const unsigned __int128 product = (unsigned __int128)(c * c) * m, one = (unsigned __int128)1 << 75;
    return product > one ? -1 : product < one;
}

Test(rsqrt_rounded, is_rounded_once) {
    int n_wrong = 0, n_near = 0;
    for (uint32_t m = 1u << 23; m < 1u << 25; m++) {
        if (m >= 1u << 24 && m % 2) continue; /* no f32 */
        const float v = (float)m * 0x1p-23f, r = (float)(1.0 / sqrt((double)v));
        const uint64_t c = (uint64_t)ldexpf(r, 26); /* half an ulp is 2^-25 between 0.5 and 1 */
        const int above = side(m, c + (r < 1 ? 2 : 4)), below = side(m, c - (r > 0.5f ? 2 : 1));
        n_wrong += above > 0 || below < 0;
        n_near += above == 0 || below == 0;
    }
    cr_assert(n_wrong == 0 && n_near == 0, "%d wrong, %d in the middle", n_wrong, n_near);
}
