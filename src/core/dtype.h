// SPDX-License-Identifier: Apache-2.0
/* Stored formats: names, sizes, constants, conversions between double and f32, f16, bf16, and the ulp of a real number. */
#ifndef NB_DTYPE_H
#define NB_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

struct nb_format {
    const char *name;     /* "f32" */
    size_t bytes;         /* of a stored element */
    int precision;        /* p, significand bits with the hidden one: 24, 11, 8 */
    int emin, emax;       /* of normal numbers: f32 -126, 127 */
    double unit_roundoff; /* u = 2^-p */
    double max_finite, min_normal, min_subnormal;
    double overflow; /* reals from here on round to infinity: (2 - 2^-p) 2^emax */
};
extern const struct nb_format nb_formats[NB_N_DTYPES];

/* "f32", "fp32", "float32", "float" ... -> enum nb_dtype, or -1. */
int nb_dtype_parse(const char *text);

/* Element i of an array of the dtype, exactly, and back with one rounding to nearest even (directly from double: no
 * double rounding through f32). */
double nb_get(const void *array, int64_t i, enum nb_dtype dtype);
void nb_set(void *array, int64_t i, enum nb_dtype dtype, double value);
double nb_round_to(double value, enum nb_dtype dtype);
uint64_t nb_bits(const void *array, int64_t i, enum nb_dtype dtype);

float nb_f16_decode(uint16_t h);
uint16_t nb_f16_encode(double v);
float nb_bf16_decode(uint16_t h);
uint16_t nb_bf16_encode(double v);

/* 2^(max(floor(log2|y|), emin) - p + 1), the spacing of the format at the real number y (Goldberg 1991 on reals; at a power of
 * two the spacing above it; 2^(emin-p+1) at 0). */
double nb_ulp(double y, enum nb_dtype dtype);

#endif
