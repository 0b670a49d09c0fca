// SPDX-License-Identifier: Apache-2.0
/* Sums, sums of squares and centred sums of squares of long rows, compensated: the result is as if summed with twice the
 * precision of double and rounded at the end (Ogita, Rump & Oishi 2005): relative error about 2^-104 n for sums of squares,
 * 2^-104 n kappa for sums and sums of products, kappa = sum |t| / |sum t|. Input: values of magnitude 0 or 2^-300 to 2^300. */
#ifndef NB_COMPENSATED_H
#define NB_COMPENSATED_H

#include <stdint.h>

#include "src/core/twofold.h"

/* Two elements side by side, each with a compensated accumulator of its own. */
typedef double nb_pair __attribute__((vector_size(16)));
struct nb_sum {
    nb_pair hi[2], lo[2];
};

/* Adds x_0 .. x_(n-1) (nb_sum_add), their squares, or their squared distances from `centre`. */
void nb_sum_add(struct nb_sum *s, const double *x, int64_t n);
void nb_sum_add_squares(struct nb_sum *s, const double *x, int64_t n);
void nb_sum_add_squares_about(struct nb_sum *s, const double *x, int64_t n, double centre);
struct nb_twofold nb_sum_total(const struct nb_sum *s);

/* Rows of pairs hi[i] + lo[i]. Below, n is rounded up to an even number: arrays have room for that, and hold numbers there whose
 * products are 0. What is not finite stays right in hi and becomes NaN in lo. */
/* hi + lo = x - centre, exactly. */
void nb_pairs_subtract(int64_t n, const double *x, const double *centre, double *hi, double *lo);
/* hi + lo = a (b + b_lo), to 2^-105 of itself. */
void nb_pairs_multiply(int64_t n, const double *a, const double *b, const double *b_lo, double *hi, double *lo);
/* Adds the pairs, or the products of two rows of pairs, each to 2^-104 of itself. */
void nb_sum_add_pairs(struct nb_sum *s, int64_t n, const double *hi, const double *lo);
void nb_sum_add_products(struct nb_sum *s, int64_t n, const double *a, const double *a_lo, const double *b,
                         const double *b_lo);
/* Accumulators side by side, sum[i] + sum_lo[i]: adds a_i, or a_i (b_i + b_lo_i), to each. */
void nb_columns_add(int64_t n, double *sum, double *sum_lo, const double *a);
void nb_columns_add_products(int64_t n, double *sum, double *sum_lo, const double *a, const double *b,
                             const double *b_lo);

/* One term to one accumulator: exact square distance as hi + lo, for sums by columns. */
static inline void nb_accumulate(struct nb_twofold *s, double hi, double lo) {
    struct nb_twofold t = nb_two_sum(s->hi, hi);
    s->hi = t.hi;
    s->lo += t.lo + lo;
}
/* (x - centre)^2 to about 2^-105 of itself. */
struct nb_twofold nb_square_about(double x, double centre);

#endif
