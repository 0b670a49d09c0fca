// SPDX-License-Identifier: Apache-2.0
/* By definition: the exact product (at most 35 bits, so a double holds it) rounded at once, against the one rounded twice. */
#include "src/lab/exhaustive/double_rounding.h"

#include <string.h>

#include "src/core/cpu.h"
#include "src/core/dtype.h"

struct nb_double_roundings nb_double_roundings_plain(float x, uint32_t first, uint32_t stride, uint32_t n,
                                                     enum nb_dtype dtype) {
    struct nb_double_roundings found = {0};
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t bits = first + i * stride;
        float rstd;
        memcpy(&rstd, &bits, sizeof rstd);
        const double exact = (double)x * (double)rstd;
        if (nb_round_to(exact, dtype) == nb_round_to((double)(float)exact, dtype)) continue;
        if (found.n++ == 0) found.first = bits;
    }
    return found;
}

struct nb_double_roundings nb_double_roundings(float x, uint32_t first, uint32_t stride, uint32_t n,
                                               enum nb_dtype dtype) {
#if defined(__x86_64__)
    if (!nb_cpu_refuses(NB_CPU_AVX2, NB_NATIVE)) return nb_double_roundings_v3(x, first, stride, n, dtype);
#endif
    return nb_double_roundings_plain(x, first, stride, n, dtype);
}
