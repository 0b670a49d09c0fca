// SPDX-License-Identifier: Apache-2.0
/* Errors counted by size: by powers of two for the eye, finely for an order statistic. */
#ifndef NB_ULP_BINS_H
#define NB_ULP_BINS_H

#include <stdint.h>

#define NB_ULP_BUCKETS 16 /* |error| in ulp: [0, 1/2], (1/2, 1], (1, 2], (2, 4] ... */
int nb_ulp_bucket(double ulps);

/* Logarithmic: 32 bins an octave from 2^-40 to 2^40. */
enum { NB_ULP_BIN_BITS = 5, NB_ULP_LOWEST_OCTAVE = -40, NB_ULP_OCTAVES = 80 };
struct nb_ulp_bins {
    int64_t n, of[NB_ULP_OCTAVES << NB_ULP_BIN_BITS];
};
void nb_ulp_bins_add(struct nb_ulp_bins *b, double ulps);
/* The 99th percentile, to 1/32 of itself above, and not above the largest error. */
double nb_ulp_bins_p99(const struct nb_ulp_bins *b, double largest);

#endif
