// SPDX-License-Identifier: Apache-2.0
/* Both from one expm1: with x = n ln 2 + r, |r| <= ln 2 / 2, expm1(x) = 2^n expm1(r) + (2^n - 1), where nothing cancels, and
 * tanh(x) = e / (e + 2) with e = expm1(2x), sigmoid(x) = 1 / (e + 2) with e = expm1(-x). */
#include "src/train/sigmoid.h"

#include <string.h>

enum { LANES = 4 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef uint32_t bits __attribute__((vector_size(LANES * sizeof(float))));

static inline lanes all(float v) { return (lanes){v, v, v, v}; }
static inline lanes choose(bits mask, lanes yes, lanes no) { return (lanes)((mask & (bits)yes) | (~mask & (bits)no)); }

/* A comparison with NaN is false, so that NaN passes. */
static inline lanes clamp(lanes x, float most) {
    x = choose((bits)(x > all(most)), all(most), x);
    return choose((bits)(x < all(-most)), all(-most), x);
}

/* For |x| <= 87. Adding 1.5 2^23 leaves the nearest integer in the lowest bits. The polynomial is Taylor's to r^7 / 7!: relative error
 * (ln 2 / 2)^7 / 8! = 2e-8. */
static inline lanes expm1_lanes(lanes x) {
    const lanes magic = all(0x1.8p23f);
    const lanes shifted = x * all(0x1.715476p+0f) + magic;
    const lanes n = shifted - magic;
    const lanes r = x - n * all(0x1.62e4p-1f) - n * all(0x1.7f7d1cp-20f);
    lanes p = all(1.0f / 5040);
    p = p * r + all(1.0f / 720);
    p = p * r + all(1.0f / 120);
    p = p * r + all(1.0f / 24);
    p = p * r + all(1.0f / 6);
    p = p * r + all(0.5f);
    const lanes q = p * r * r + r;
    const bits power = ((bits)shifted << 23) + (bits){127u << 23, 127u << 23, 127u << 23, 127u << 23};
    return (lanes)power * q + ((lanes)power - all(1));
}

static inline lanes sigmoid_lanes(lanes x) { return all(1) / (expm1_lanes(clamp(-x, 87)) + all(2)); }
static inline lanes tanh_lanes(lanes x) {
    const lanes e = expm1_lanes(clamp(x + x, 40));
    return e / (e + all(2));
}

static lanes load(const float *p) {
    lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* What is left at the end goes through a full vector too, so that an element's result does not hang on its place. */
void nb_sigmoid_tensor(float *values, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const lanes y = sigmoid_lanes(load(values + i));
        memcpy(values + i, &y, sizeof y);
    }
    float rest[LANES] = {0};
    memcpy(rest, values + i, (size_t)(n - i) * sizeof *rest);
    const lanes y = sigmoid_lanes(load(rest));
    memcpy(values + i, &y, (size_t)(n - i) * sizeof *rest);
}

void nb_tanh_tensor(float *values, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const lanes y = tanh_lanes(load(values + i));
        memcpy(values + i, &y, sizeof y);
    }
    float rest[LANES] = {0};
    memcpy(rest, values + i, (size_t)(n - i) * sizeof *rest);
    const lanes y = tanh_lanes(load(rest));
    memcpy(values + i, &y, (size_t)(n - i) * sizeof *rest);
}
