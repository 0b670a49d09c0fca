// SPDX-License-Identifier: Apache-2.0
/* Conversions from f32 to narrow formats: those there are, and one by integers that they are compared with. */
#ifndef NB_EXHAUST_CONVERT_H
#define NB_EXHAUST_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nb_narrow {
    const char *name;
    int exponent_bits, fraction_bits;
    bool has_inf;
    uint32_t nan; /* the quiet one */
};
extern const struct nb_narrow nb_narrow_f16, nb_narrow_bf16, nb_narrow_e5m2, nb_narrow_e4m3;

/* The code of a float, to nearest even; beyond the range Inf, or NaN in a format without it. */
uint32_t nb_convert_by_integers(uint32_t f32_bits, const struct nb_narrow *to);
/* Does the code a stand for what b does? NaNs are all the same. */
bool nb_narrow_same(uint32_t a, uint32_t b, const struct nb_narrow *format);

struct nb_conversion {
    const struct nb_narrow *format;
    char name[64];
    uint32_t needs;                               /* mask of enum nb_cpu_feature */
    bool is_ieee;                                 /* must be right on every input */
    void (*convert)(const float *x, uint16_t *y); /* NB_BATCH of them */
};
enum { NB_MAX_CONVERSIONS = 32 };
/* All, into out[NB_MAX_CONVERSIONS]; returns how many. */
size_t nb_conversions(struct nb_conversion *out);

#endif
