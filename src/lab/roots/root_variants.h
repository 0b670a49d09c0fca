// SPDX-License-Identifier: Apache-2.0
/* Every way in use to form 1/sqrt(x) in f32, each as a function over NB_BATCH values. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/lab/roots/simd_functions.h"

/* Of vrsqrtph of x rounded to f16: the instruction's error is below 2^-11 + 2^-14 (Intel SDM), and the rounding
 * moves 1/sqrt(x) by a factor of at most 1 + 2^-12. */
#define NB_RSQRTPH_LIMIT ((0x1p-11 + 0x1p-14) * (1 + 0x1p-12) + 0x1p-12)

struct nb_root_variant {
    const char *name;
    const char *formula;
    uint32_t needs;        /* mask of enum nb_cpu_feature; 0: any */
    const char *elsewhere; /* not null: this architecture has none, and why */
    /* What IEEE 754 or the instruction's specification promises: the largest relative error on normal numbers, by variants in f16 on
     * those of f16; 0: nothing. */
    double relative_limit;
    void (*fill)(const float *x, float *r);
};
extern const struct nb_root_variant nb_root_variants[];
extern const size_t nb_n_root_variants;

const struct nb_root_variant *nb_root_variant_find(const char *name); /* or null */
/* Null, or why it cannot run here. */
const char *nb_root_variant_refuses(const struct nb_root_variant *v);
