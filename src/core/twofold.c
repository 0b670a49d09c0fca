// SPDX-License-Identifier: Apache-2.0
/* Two independent pairs of accumulators hide the latency of the additions. Products are split after Dekker and not by fma(),
 * which is a library call wherever the program is built for a CPU without it. */
#include "src/core/twofold.h"

static inline void pair_accumulate(nb_pair *hi, nb_pair *lo, nb_pair term, nb_pair term_lo) {
    nb_pair s = *hi + term, part = s - *hi;
    *lo += ((*hi - (s - part)) + (term - part)) + term_lo;
    *hi = s;
}

/* The rounding error of a * a, exactly: Dekker's halves of 26 bits. */
static inline nb_pair pair_square_error(nb_pair a, nb_pair square) {
    nb_pair scaled = a * 134217729.0, high = scaled - (scaled - a), low = a - high;
    return ((high * high - square) + 2.0 * high * low) + low * low;
}

static inline nb_pair pair_load(const double *x) { return (nb_pair){x[0], x[1]}; }

/* The error of x - centre enters the square as 2 * distance * error; its own square is below 2^-106 of the term. */
static inline void pair_add_square(nb_pair *hi, nb_pair *lo, nb_pair x, nb_pair centre) {
    nb_pair d = x - centre, x_part = d + centre;
    nb_pair d_error = (x - x_part) - (centre - (x_part - d));
    nb_pair square = d * d;
    pair_accumulate(hi, lo, square, pair_square_error(d, square) + 2.0 * d * d_error);
}

/* An absent partner counts as 0, or as the centre. */
static inline nb_pair pair_last(const double *x, double absent) { return (nb_pair){x[0], absent}; }

void nb_sum_add(struct nb_sum *s, const double *x, int64_t n) {
    const nb_pair zero = {0.0, 0.0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        pair_accumulate(&s->hi[0], &s->lo[0], pair_load(x + i), zero);
        pair_accumulate(&s->hi[1], &s->lo[1], pair_load(x + i + 2), zero);
    }
    for (; i < n; i++) pair_accumulate(&s->hi[0], &s->lo[0], pair_last(x + i, 0.0), zero);
}

void nb_sum_add_squares(struct nb_sum *s, const double *x, int64_t n) { nb_sum_add_squares_about(s, x, n, 0.0); }

void nb_sum_add_squares_about(struct nb_sum *s, const double *x, int64_t n, double centre) {
    const nb_pair c = {centre, centre};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        pair_add_square(&s->hi[0], &s->lo[0], pair_load(x + i), c);
        pair_add_square(&s->hi[1], &s->lo[1], pair_load(x + i + 2), c);
    }
    for (; i < n; i++) pair_add_square(&s->hi[0], &s->lo[0], pair_last(x + i, centre), c);
}

/* ---- pairs ----------------------------------------------------------------------------------------------------------- */

struct halves {
    nb_pair high, low;
};

static inline struct halves pair_split(nb_pair a) {
    nb_pair scaled = a * 134217729.0, high = scaled - (scaled - a);
    return (struct halves){high, a - high};
}

/* The rounding error of a * b, exactly (Dekker). */
static inline nb_pair pair_product_error(nb_pair a, nb_pair b, nb_pair product) {
    struct halves p = pair_split(a), q = pair_split(b);
    return (((p.high * q.high - product) + p.high * q.low) + p.low * q.high) + p.low * q.low;
}

static inline void pair_store(double *x, nb_pair v) {
    x[0] = v[0];
    x[1] = v[1];
}

void nb_pairs_subtract(int64_t n, const double *x, const double *centre, double *hi, double *lo) {
    for (int64_t i = 0; i < n; i += 2) {
        nb_pair a = pair_load(x + i), c = pair_load(centre + i), d = a - c, a_part = d + c;
        pair_store(hi + i, d);
        pair_store(lo + i, (a - a_part) - (c - (a_part - d)));
    }
}

void nb_pairs_multiply(int64_t n, const double *a, const double *b, const double *b_lo, double *hi, double *lo) {
    for (int64_t i = 0; i < n; i += 2) {
        nb_pair p = pair_load(a + i), q = pair_load(b + i), product = p * q;
        pair_store(hi + i, product);
        pair_store(lo + i, pair_product_error(p, q, product) + p * pair_load(b_lo + i));
    }
}

void nb_sum_add_pairs(struct nb_sum *s, int64_t n, const double *hi, const double *lo) {
    struct nb_sum t = *s; /* in registers */
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        pair_accumulate(&t.hi[0], &t.lo[0], pair_load(hi + i), pair_load(lo + i));
        pair_accumulate(&t.hi[1], &t.lo[1], pair_load(hi + i + 2), pair_load(lo + i + 2));
    }
    for (; i < n; i += 2) pair_accumulate(&t.hi[0], &t.lo[0], pair_load(hi + i), pair_load(lo + i));
    *s = t;
}

static inline void pair_add_product(nb_pair *hi, nb_pair *lo, nb_pair a, nb_pair a_lo, nb_pair b, nb_pair b_lo) {
    nb_pair product = a * b;
    pair_accumulate(hi, lo, product, pair_product_error(a, b, product) + (a * b_lo + a_lo * b));
}

void nb_sum_add_products(struct nb_sum *s, int64_t n, const double *a, const double *a_lo, const double *b,
                         const double *b_lo) {
    struct nb_sum t = *s;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        pair_add_product(&t.hi[0], &t.lo[0], pair_load(a + i), pair_load(a_lo + i), pair_load(b + i),
                         pair_load(b_lo + i));
        pair_add_product(&t.hi[1], &t.lo[1], pair_load(a + i + 2), pair_load(a_lo + i + 2), pair_load(b + i + 2),
                         pair_load(b_lo + i + 2));
    }
    for (; i < n; i += 2)
        pair_add_product(&t.hi[0], &t.lo[0], pair_load(a + i), pair_load(a_lo + i), pair_load(b + i),
                         pair_load(b_lo + i));
    *s = t;
}

void nb_columns_add(int64_t n, double *sum, double *sum_lo, const double *a) {
    const nb_pair zero = {0.0, 0.0};
    for (int64_t i = 0; i < n; i += 2) {
        nb_pair hi = pair_load(sum + i), lo = pair_load(sum_lo + i);
        pair_accumulate(&hi, &lo, pair_load(a + i), zero);
        pair_store(sum + i, hi);
        pair_store(sum_lo + i, lo);
    }
}

void nb_columns_add_products(int64_t n, double *sum, double *sum_lo, const double *a, const double *b,
                             const double *b_lo) {
    const nb_pair zero = {0.0, 0.0};
    for (int64_t i = 0; i < n; i += 2) {
        nb_pair hi = pair_load(sum + i), lo = pair_load(sum_lo + i);
        pair_add_product(&hi, &lo, pair_load(a + i), zero, pair_load(b + i), pair_load(b_lo + i));
        pair_store(sum + i, hi);
        pair_store(sum_lo + i, lo);
    }
}

/* ---- totals ---------------------------------------------------------------------------------------------------------- */

struct nb_twofold nb_sum_total(const struct nb_sum *s) {
    struct nb_twofold total = {0.0, 0.0};
    for (int i = 0; i < 4; i++)
        total = nb_twofold_add(total, nb_twofold_renormalize(s->hi[i / 2][i % 2], s->lo[i / 2][i % 2]));
    return total;
}

struct nb_twofold nb_square_about(double x, double centre) {
    struct nb_twofold d = nb_two_sum(x, -centre);
    double square = d.hi * d.hi, scaled = d.hi * 134217729.0, high = scaled - (scaled - d.hi), low = d.hi - high;
    double error = ((high * high - square) + 2.0 * high * low) + low * low;
    return nb_twofold_renormalize(square, error + 2.0 * d.hi * d.lo);
}
