// SPDX-License-Identifier: Apache-2.0
/* Number formats, stored and emulated: names, sizes, constants, one rounding to each, and the ulp of a real number. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "src/core/bits.h"

struct nb_format {
    const char *name;     /* "f32" */
    size_t bytes;         /* of a stored element */
    int precision;        /* p, significand bits with the hidden one: 24, 11, 8 */
    int emin, emax;       /* of normal numbers: f32 -126, 127 */
    double unit_roundoff; /* u = 2^-p */
    double max_finite, min_normal, min_subnormal;
    double overflow; /* reals from here on round to infinity: (2 - 2^-p) 2^emax */
};

/* What a design may be emulated in, the formats of tensors (enum nb_dtype) among them in their order. */
enum nb_number {
    NB_NUM_F64,
    NB_NUM_F32,
    NB_NUM_F16,
    NB_NUM_BF16,
    NB_NUM_TF32, /* f32's range, 11 bits of significand (NVIDIA tensor cores) */
    NB_NUM_E5M2, /* OCP 8-bit formats (Micikevicius et al. 2022): e5m2 has infinities, */
    NB_NUM_E4M3, /* e4m3 (the "fn" kind) has none: NaN beyond 448 */
    NB_N_NUMBERS
};
extern const struct nb_format nb_numbers[NB_N_NUMBERS];                    /* bytes: of a stored element; tf32 4 */
static const struct nb_format *const nb_formats = &nb_numbers[NB_NUM_F32]; /* by dtype */
static inline enum nb_number nb_number_of(enum nb_dtype dtype) { return (enum nb_number)(NB_NUM_F32 + dtype); }

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

/* ---- formats of the emulator ---- */

/* How a real number is rounded to each format. All are held in double, exactly. */

enum nb_rounding { NB_ROUND_NEAREST, NB_ROUND_ZERO, NB_ROUND_STOCHASTIC, NB_N_ROUNDINGS };

/* "f16", "fp16", "float16", "tf32", "e4m3", "float8_e4m3fn" ... -> enum nb_number, or -1. */
int nb_number_parse(const char *text);
/* Has it infinities (else NaN stands for what is beyond the range)? */
bool nb_number_has_inf(enum nb_number number);

/* v rounded. `below` is the exact remainder that v does not show, v being the double nearest to the whole (0: v is exact): a sum
 * or a product computed in double gives it by an error-free transformation, so that nothing is rounded twice. Only its sign
 * counts, but for stochastic rounding, where it is part of the chance. random: 64 uniform bits, used by stochastic rounding
 * alone. An infinite v with a `below` of the other sign is a finite number beyond the range of double. Numbers beyond the range
 * of the format become what a non-saturating conversion gives: infinity, or NaN in e4m3; rounding to zero gives the largest
 * number for finite ones. */
double nb_number_round(double v, double below, enum nb_number number, enum nb_rounding rounding, uint64_t random);
/* The spacing at the real number y, as nb_ulp() of dtype.h. */
double nb_number_ulp(double y, enum nb_number number);
/* The multiple of a spacing (a power of two) that is nearest to v, ties to even; |v| / spacing < 2^51. */
static inline double nb_nearest_multiple(double v, double spacing) {
    const double to_integer = 0x1p52; /* from here on doubles are integers: adding it rounds to nearest even */
    return copysign(((fabs(v) / spacing + to_integer) - to_integer) * spacing, v);
}
/* Stored bits of a number of the format (round first), and back: for sweeps over every number of it. Not for f64. tf32: in the upper
 * 19 bits of an f32 word; the lower ones are ignored. */
uint32_t nb_number_encode(double v, enum nb_number number);
double nb_number_decode(uint32_t bits, enum nb_number number);

/* ---- neighbours ---- */

/* The numbers of a format as a line of points: neighbours, and the point where something begins. Not for f64. */

/* The neighbour below v >= 0, which the format has; below 0 is 0. */
double nb_next_below(double v, enum nb_number number);
/* The least positive finite number of the format from which on `holds` is true, given that it is false below and true above;
 * Infinity: nowhere. */
double nb_first_representable(enum nb_number number, bool (*holds)(double v, const void *arg), const void *arg);

/* ---- One arithmetic operation, rounded once: computed in double together with its exact remainder (two-sum of Knuth 1969, fma
 * residuals, ErrFma of Boldo & Muller 2005), then rounded to the format wanted. Operands are any doubles.
 * The remainder is exact save where it lies below the range of double (results of f64 under 2^-960): its sign is right even there,
 * which rounding to nearest and to zero need; stochastic rounding has the wrong chance there by up to the whole. ---- */

struct nb_rounder {
    enum nb_rounding rounding;
    bool flush;      /* results that are subnormal in their format become 0 */
    uint64_t random; /* state, of stochastic rounding */
};

/* v, whose remainder is below (see nb_number_round), to the format. */
double nb_rounder_round(struct nb_rounder *r, double v, double below, enum nb_number to);
static inline double nb_convert(struct nb_rounder *r, double v, enum nb_number to) {
    return nb_rounder_round(r, v, 0, to);
}
double nb_rounded_add(struct nb_rounder *r, double a, double b, enum nb_number to);
static inline double nb_rounded_sub(struct nb_rounder *r, double a, double b, enum nb_number to) {
    return nb_rounded_add(r, a, -b, to);
}
double nb_rounded_mul(struct nb_rounder *r, double a, double b, enum nb_number to);
double nb_rounded_div(struct nb_rounder *r, double a, double b, enum nb_number to);
double nb_rounded_sqrt(struct nb_rounder *r, double a, enum nb_number to);
/* a * b + c */
double nb_rounded_fma(struct nb_rounder *r, double a, double b, double c, enum nb_number to);
