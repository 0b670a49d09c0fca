// SPDX-License-Identifier: Apache-2.0
/* The conversion from f32 to narrow formats by integers, which those in use are compared with. */
#ifndef NB_EXHAUST_CONVERT_H
#define NB_EXHAUST_CONVERT_H

#include <stdbool.h>
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

#endif
