// SPDX-License-Identifier: Apache-2.0
/* How wrong values of 1/sqrt(x) in f32 are, x positive and finite: error in ulp of the exact value, and whether each is correctly
 * rounded, which is decided exactly.
 *
 * Let r be a positive normal float, d and u the midpoints between it and its neighbours. r is the rounded value of 1/sqrt(x) iff
 * d < 1/sqrt(x) < u, that is d^2 x < 1 < u^2 x. Midpoints have 25 bits, so their squares fit a double exactly, and fma(d^2, x, -1)
 * is the exact d^2 x - 1 rounded once, which keeps its sign: nothing underflows, the exact value being a multiple of 2^-500 (the
 * last bit of d is worth at least 2^-174, that of x 2^-149). A tie, d^2 x = 1, does not occur: the odd part of
 * d is above 1 (its last of 25 bits is set), and would have to divide a power of two. A subnormal r is never right, for
 * 1/sqrt(x) >= 2^-64, and the same test says so. */
#ifndef NB_ROOT_CHECK_H
#define NB_ROOT_CHECK_H

#include <stdint.h>

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

/* n values, n <= NB_BATCH. */
void nb_root_check(const float *x, const float *r, int n, struct nb_root_sums *sums);
/* The two ways that nb_root_check chooses from; the sums are the same bit for bit. The second needs AVX2 and FMA. */
void nb_root_check_plain(const float *x, const float *r, int n, struct nb_root_sums *sums);
void nb_root_check_v3(const float *x, const float *r, int n, struct nb_root_sums *sums);
/* What became of inputs that are not positive and finite. */
void nb_root_tally(const float *r, int n, struct nb_root_sums *sums);
/* Appends b, which comes after a. */
void nb_root_merge(struct nb_root_sums *a, const struct nb_root_sums *b);

/* For both ways. */
enum nb_root_outcome nb_root_outcome(float r);
double nb_root_error_ulp(float x, float r); /* signed */

#endif
