// SPDX-License-Identifier: Apache-2.0
/* Double-double arithmetic: a number is the unevaluated sum hi + lo of two doubles, |lo| <= ulp(hi) / 2, some 106 bits.
 * The error-free steps are Knuth's and Dekker's (1969, 1971); operations on finite values far from the ends of the range, which
 * squares and sums of f32 data are. Needs round to nearest and no contraction to FMA. */
#pragma once

#include <math.h>
#include <stdint.h>

struct nb_twofold {
    double hi, lo;
};

static inline struct nb_twofold nb_two_sum(double a, double b) {
    double s = a + b, b_part = s - a;
    return (struct nb_twofold){s, (a - (s - b_part)) + (b - b_part)};
}

static inline struct nb_twofold nb_two_product(double a, double b) {
    double p = a * b;
    return (struct nb_twofold){p, fma(a, b, -p)};
}

static inline struct nb_twofold nb_twofold_of(double a) { return (struct nb_twofold){a, 0.0}; }

/* a + b where |a| >= |b|, or a is 0: hi takes what it can of lo. */
static inline struct nb_twofold nb_twofold_renormalize(double hi, double lo) {
    double s = hi + lo;
    return (struct nb_twofold){s, lo - (s - hi)};
}

static inline struct nb_twofold nb_twofold_add(struct nb_twofold a, struct nb_twofold b) {
    struct nb_twofold s = nb_two_sum(a.hi, b.hi), t = nb_two_sum(a.lo, b.lo);
    s = nb_twofold_renormalize(s.hi, s.lo + t.hi);
    return nb_twofold_renormalize(s.hi, s.lo + t.lo);
}

static inline struct nb_twofold nb_twofold_sub(struct nb_twofold a, struct nb_twofold b) {
    return nb_twofold_add(a, (struct nb_twofold){-b.hi, -b.lo});
}

static inline struct nb_twofold nb_twofold_mul(struct nb_twofold a, struct nb_twofold b) {
    struct nb_twofold p = nb_two_product(a.hi, b.hi);
    return nb_twofold_renormalize(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static inline struct nb_twofold nb_twofold_div(struct nb_twofold a, struct nb_twofold b) {
    double q = a.hi / b.hi;
    struct nb_twofold rest = nb_twofold_sub(a, nb_twofold_mul(b, nb_twofold_of(q)));
    return nb_twofold_renormalize(q, (rest.hi + rest.lo) / b.hi);
}

/* a > 0. One Newton step from the rounded root, with the residual exact. */
static inline struct nb_twofold nb_twofold_sqrt(struct nb_twofold a) {
    double s = sqrt(a.hi);
    struct nb_twofold rest = nb_twofold_sub(a, nb_two_product(s, s));
    return nb_twofold_renormalize(s, (rest.hi + rest.lo) / (2.0 * s));
}

/* ---- compensated sums ---- */

/* Sums, sums of squares and centred sums of squares of long rows, compensated: the result is as if summed with twice the
 * precision of double and rounded at the end (Ogita, Rump & Oishi 2005): relative error about 2^-104 n for sums of squares,
 * 2^-104 n kappa for sums and sums of products, kappa = sum |t| / |sum t|. Input: values of magnitude 0 or 2^-300 to 2^300. */

/* Two elements side by side, each with a compensated accumulator of its own. */
typedef double nb_pair __attribute__((vector_size(16)));
struct nb_sum {
    nb_pair hi[2], lo[2];
};

static inline nb_pair nb_pair_load(const double *x) { return (nb_pair){x[0], x[1]}; }

static inline void nb_pair_accumulate(nb_pair *hi, nb_pair *lo, nb_pair term, nb_pair term_lo) {
    nb_pair s = *hi + term, part = s - *hi;
    *lo += ((*hi - (s - part)) + (term - part)) + term_lo;
    *hi = s;
}

/* Adds x_0 .. x_(n-1) (nb_sum_add), their squares, or their squared distances from `centre`. */
void nb_sum_add(struct nb_sum *s, const double *x, int64_t n);
void nb_sum_add_squares(struct nb_sum *s, const double *x, int64_t n);
void nb_sum_add_squares_about(struct nb_sum *s, const double *x, int64_t n, double centre);
struct nb_twofold nb_sum_total(const struct nb_sum *s);
