// SPDX-License-Identifier: Apache-2.0
/* What is the same in every width of aarch64: single elements. */
#pragma once

#include <stdint.h>
#include <string.h>

/* FRSQRTE, of which two Newton steps make an f32 (kernels/shared/root.h). */
#define NB_RSQRT_OF_8_BITS
static inline float nb_rsqrt_estimate(float v) {
    float r;
    __asm__("frsqrte %s0, %s1" : "=w"(r) : "w"(v));
    return r;
}

static inline float nb_f16_to_f32(uint16_t h) {
    __fp16 f;
    memcpy(&f, &h, sizeof f);
    return (float)f;
}
static inline uint16_t nb_f32_to_f16(float v) {
    __fp16 f = (__fp16)v;
    uint16_t h;
    memcpy(&h, &f, sizeof h);
    return h;
}
