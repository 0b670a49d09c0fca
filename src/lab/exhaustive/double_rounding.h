// SPDX-License-Identifier: Apache-2.0
/* Products that come out differently when they are rounded to f32 first and to a 16-bit dtype then. */
#ifndef NB_DOUBLE_ROUNDING_H
#define NB_DOUBLE_ROUNDING_H

#include <stdint.h>

#include "kernels/kernel.h"

struct nb_double_roundings {
    int64_t n;
    uint32_t first; /* bits of the first rstd */
};

/* x times n floats whose bits begin at `first`, a stride apart; x and all of them in [1, 2). */
struct nb_double_roundings nb_double_roundings(float x, uint32_t first, uint32_t stride, uint32_t n,
                                               enum nb_dtype dtype);
/* The two ways that it chooses from; the second needs AVX2 and FMA. */
struct nb_double_roundings nb_double_roundings_plain(float x, uint32_t first, uint32_t stride, uint32_t n,
                                                     enum nb_dtype dtype);
struct nb_double_roundings nb_double_roundings_v3(float x, uint32_t first, uint32_t stride, uint32_t n,
                                                  enum nb_dtype dtype);

#endif
