// SPDX-License-Identifier: Apache-2.0
/* What the modes of exhaust.h compare with: the conversion to narrow formats by integers, the definition of a product that is rounded
 * twice, and the errors of 1/sqrt(x). */
#ifndef NB_EXHAUST_CHECKS_H
#define NB_EXHAUST_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernel.h"

/* ---- from f32 to a narrow format ---- */

struct nb_narrow {
    const char *name;
    int exponent_bits, fraction_bits;
    bool has_inf;
    uint32_t nan; /* the quiet one */
};
extern const struct nb_narrow nb_narrow_f16, nb_narrow_bf16, nb_narrow_e5m2, nb_narrow_e4m3;

/* The code of a float, to nearest even; beyond the range Inf, or NaN in a format without it. */
uint32_t nb_convert_by_integers(uint32_t f32_bits, const struct nb_narrow *to);

/* ---- products that come out differently when they are rounded to f32 first and to a 16-bit dtype then ---- */

struct nb_double_roundings {
    int64_t n;
    uint32_t first; /* bits of the first rstd */
};

/* x times n floats whose bits begin at `first`, a stride apart; x and all of them in [1, 2). By definition, or, where that is not asked for
 * and the CPU has AVX2, eight at a time: the same answer. */
struct nb_double_roundings nb_double_roundings(float x, uint32_t first, uint32_t stride, uint32_t n,
                                               enum nb_dtype dtype, bool by_definition);

/* ---- how wrong values of 1/sqrt(x) in f32 are, x positive and finite: error in ulp of the exact value, and whether each is correctly
 * rounded, which is decided exactly (src/lab/README.md) ---- */

/* Representable numbers between r and the correctly rounded one: 0, 1, 2, 3, 4, 5-8, 9-16, ... 2^15+1 - 2^16, more. */
enum { NB_ROOT_BUCKETS = 18 };
/* What came instead of a positive finite number, or for an input that is none. */
enum nb_root_outcome {
    NB_ROOT_NAN,
    NB_ROOT_INF,
    NB_ROOT_MINUS_INF,
    NB_ROOT_ZERO,
    NB_ROOT_NEGATIVE,
    NB_ROOT_POSITIVE,
    NB_N_ROOT_OUTCOMES
};
extern const char *const nb_root_outcome_names[NB_N_ROOT_OUTCOMES];

struct nb_root_sums {
    int64_t n;                            /* inputs */
    int64_t outcomes[NB_N_ROOT_OUTCOMES]; /* only the last takes part in what follows */
    int64_t n_misrounded;
    int64_t histogram[NB_ROOT_BUCKETS];
    double sum_ulp;               /* signed; summed in an order that is the same everywhere */
    double max_ulp, max_relative; /* of |error| */
    uint32_t witness;             /* the first x with max_ulp; 0 where max_ulp is 0 */
    float witness_got;
};

#endif
