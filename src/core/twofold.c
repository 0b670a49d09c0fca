// SPDX-License-Identifier: Apache-2.0
/* Two independent pairs of accumulators hide the latency of the additions. Products are split after Dekker and not by fma(),
 * which is a library call wherever the program is built for a CPU without it. */
#include "src/core/twofold.h"

/* The rounding error of a * a, exactly: Dekker's halves of 26 bits. */
static inline nb_pair pair_square_error(nb_pair a, nb_pair square) {
    nb_pair scaled = a * 134217729.0, high = scaled - (scaled - a), low = a - high;
    return ((high * high - square) + 2.0 * high * low) + low * low;
}

/* The error of x - centre enters the square as 2 * distance * error; its own square is below 2^-106 of the term. */
static inline void pair_add_square(nb_pair *hi, nb_pair *lo, nb_pair x, nb_pair centre) {
    nb_pair d = x - centre, x_part = d + centre;
    nb_pair d_error = (x - x_part) - (centre - (x_part - d));
    nb_pair square = d * d;
    nb_pair_accumulate(hi, lo, square, pair_square_error(d, square) + 2.0 * d * d_error);
}

/* An absent partner counts as 0, or as the centre. */
static inline nb_pair pair_last(const double *x, double absent) { return (nb_pair){x[0], absent}; }

void nb_sum_add(struct nb_sum *s, const double *x, int64_t n) {
    const nb_pair zero = {0.0, 0.0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        nb_pair_accumulate(&s->hi[0], &s->lo[0], nb_pair_load(x + i), zero);
        nb_pair_accumulate(&s->hi[1], &s->lo[1], nb_pair_load(x + i + 2), zero);
    }
    for (; i < n; i++) nb_pair_accumulate(&s->hi[0], &s->lo[0], pair_last(x + i, 0.0), zero);
}

void nb_sum_add_squares(struct nb_sum *s, const double *x, int64_t n) { nb_sum_add_squares_about(s, x, n, 0.0); }

void nb_sum_add_squares_about(struct nb_sum *s, const double *x, int64_t n, double centre) {
    const nb_pair c = {centre, centre};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        pair_add_square(&s->hi[0], &s->lo[0], nb_pair_load(x + i), c);
        pair_add_square(&s->hi[1], &s->lo[1], nb_pair_load(x + i + 2), c);
    }
    for (; i < n; i++) pair_add_square(&s->hi[0], &s->lo[0], pair_last(x + i, centre), c);
}

/* ---- totals ---------------------------------------------------------------------------------------------------------- */

struct nb_twofold nb_sum_total(const struct nb_sum *s) {
    struct nb_twofold total = {0.0, 0.0};
    for (int i = 0; i < 4; i++)
        total = nb_twofold_add(total, nb_twofold_renormalize(s->hi[i / 2][i % 2], s->lo[i / 2][i % 2]));
    return total;
}
