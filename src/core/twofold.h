// SPDX-License-Identifier: Apache-2.0
/* Double-double arithmetic: a number is the unevaluated sum hi + lo of two doubles, |lo| <= ulp(hi) / 2, some 106 bits.
 * The error-free steps are Knuth's and Dekker's (1969, 1971); operations on finite values far from the ends of the range, which
 * squares and sums of f32 data are. Needs round to nearest and no contraction to FMA. */
#ifndef NB_TWOFOLD_H
#define NB_TWOFOLD_H

#include <math.h>

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

#endif
