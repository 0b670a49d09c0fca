// SPDX-License-Identifier: Apache-2.0
/* Rows that a sum of many terms rounds badly: walk the order in which a kernel adds, draw several candidates for each element
 * from the distribution that is wanted, keep the one whose addition rounds the most in the wanted direction. The row keeps the
 * distribution's mean and variance, since only low bits of the sums decide. */
#ifndef NB_GREEDY_H
#define NB_GREEDY_H

#include <stdbool.h>
#include <stdint.h>

#include "src/core/dtype.h"

/* The order that is assumed of the kernel. */
struct nb_sum_order {
    int lanes;    /* element i goes to lane i mod lanes, at most NB_MAX_LANES; 0: pairwise, halves down to leaves */
    int leaf;     /* pairwise: elements summed one after another */
    bool squares; /* what is summed: squares of x - about (fused: rounded once, in the addition), or x */
    double about;
    enum nb_dtype sum; /* the accumulators' format */
    bool fused;        /* squares enter unrounded */
};
enum { NB_MAX_LANES = 128 };

struct nb_greedy {
    struct nb_sum_order order;
    enum nb_dtype dtype;  /* of the elements, as stored */
    double offset, scale; /* the distribution: offset + scale N(0,1) */
    int best_of;
    int sign; /* of the rounding errors wanted: 1 or -1 */
    uint64_t seed;
};

/* n elements, each a number of the dtype. */
void nb_greedy_row(const struct nb_greedy *g, int64_t n, double *x);

#endif
