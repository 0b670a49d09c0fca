// SPDX-License-Identifier: Apache-2.0
/* Exponent and first bits of the significand are taken as they stand in the double. */
#include "src/accuracy/ulp_bins.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { BINS_PER_OCTAVE = 1 << NB_ULP_BIN_BITS, N_BINS = NB_ULP_OCTAVES * BINS_PER_OCTAVE };

static uint64_t bits_of(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

int nb_ulp_bucket(double ulps) {
    if (ulps <= 0.5) return 0;
    const uint64_t bits = bits_of(ulps);
    const bool power_of_two = bits << 12 == 0;
    const int bucket = (int)(bits >> 52) - 1023 + (power_of_two ? 1 : 2); /* (1/2, 1] is 1 */
    return bucket < NB_ULP_BUCKETS ? bucket : NB_ULP_BUCKETS - 1;
}

static int bin_of(double ulps) {
    if (ulps < 0x1p-40) return 0;
    const int64_t lowest = (int64_t)(1023 + NB_ULP_LOWEST_OCTAVE) * BINS_PER_OCTAVE;
    const int64_t bin = (int64_t)(bits_of(ulps) >> (52 - NB_ULP_BIN_BITS)) - lowest;
    return bin < N_BINS ? (int)bin : N_BINS - 1;
}

void nb_ulp_bins_add(struct nb_ulp_bins *b, double ulps) {
    b->n++;
    b->of[bin_of(ulps)]++;
}

double nb_ulp_bins_p99(const struct nb_ulp_bins *b, double largest) {
    const double wanted = 0.99 * (double)b->n;
    int64_t below = 0;
    for (int bin = 0; bin < N_BINS; bin++) {
        below += b->of[bin];
        if ((double)below < wanted) continue;
        const double upper = 1 + (bin % BINS_PER_OCTAVE + 1.0) / BINS_PER_OCTAVE;
        return fmin(ldexp(upper, bin / BINS_PER_OCTAVE + NB_ULP_LOWEST_OCTAVE), largest);
    }
    return largest;
}
