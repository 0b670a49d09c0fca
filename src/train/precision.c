// SPDX-License-Identifier: Apache-2.0
/* Rounding of f32 arrays to 16-bit formats and back, by the bits, so that a compiler without their instructions can do it fast. */
#include "src/train/precision.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static float of_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Half of the last place kept is added, less one where that place is even; a carry into the exponent is right, to infinity too. */
static float drop_bits(float x, int n) {
    const uint32_t u = bits_of(x), odd = u >> n & 1;
    return of_bits((u + (1u << (n - 1)) - 1 + odd) & ~((1u << n) - 1));
}

static float round_bf16(float x) { return isnan(x) ? x : drop_bits(x, 16); }

/* Below 2^-14 the spacing of f16 is 2^-24, which is that of f32 in [1/2, 1): adding 3/4 rounds. */
static float round_f16(float x) {
    if (isnan(x)) return x;
    const float magnitude = fabsf(x);
    if (magnitude >= 65520.0f) return copysignf(INFINITY, x);
    if (magnitude < 0x1p-14f) return copysignf((magnitude + 0.75f) - 0.75f, x);
    return drop_bits(x, 13);
}

void nb_round_tensor(float *values, int64_t n, enum nb_dtype dtype) {
    if (dtype == NB_BF16)
        for (int64_t i = 0; i < n; i++) values[i] = round_bf16(values[i]);
    if (dtype == NB_F16)
        for (int64_t i = 0; i < n; i++) values[i] = round_f16(values[i]);
}
