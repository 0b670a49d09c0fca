// SPDX-License-Identifier: Apache-2.0
/* The sum of equal addends: within a binade every addition moves the sum by the same step, so that whole stretches are taken at
 * once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/lab/limits/limits_rules.h"

/* n times += q. Ties go to even, so that within a binade two equal steps are followed by more of the same. */
static double running_sum(double q, int64_t n, enum nb_number acc) {
    double s = 0;
    while (n > 0) {
        const double next = nb_rn_add(s, q, acc);
        n--;
        if (next == s || !isfinite(next)) return next;
        s = next;
        const double step = nb_rn_add(s, q, acc) - s, top = ldexp(1, ilogb(s) + 1);
        if (!(step > 0) || !isfinite(step) || nb_rn_add(s + step, q, acc) - (s + step) != step) continue;
        double stretch = floor((top - q - s) / step) - 1;
        if (stretch > (double)n) stretch = (double)n;
        if (stretch < 1) continue;
        s += stretch * step;
        n -= (int64_t)stretch;
    }
    return s;
}

static double tree_of_lanes(const struct nb_design *d, double addend, int64_t n) {
    const int64_t lanes = d->lanes, extra = n % lanes;
    double *lane freed = nb_alloc((unsigned long long)lanes, sizeof *lane);
    const double more = running_sum(addend, n / lanes + 1, d->acc), fewer = running_sum(addend, n / lanes, d->acc);
    for (int64_t i = 0; i < lanes; i++) lane[i] = i < extra ? more : fewer;
    for (int64_t count = lanes; count > 1; count = (count + 1) / 2) {
        for (int64_t i = 0; i < count / 2; i++) lane[i] = nb_rn_add(lane[2 * i], lane[2 * i + 1], d->acc);
        if (count % 2) lane[count / 2] = lane[count - 1];
    }
    return lane[0];
}

/* Halves differ by one element at most, so that each level has two sizes: the sums of n and n + 1 elements. */
struct two_sums {
    double of_n, of_next;
};

static struct two_sums halves(double addend, int64_t n, int64_t leaf, enum nb_number acc) {
    if (n + 1 <= leaf) return (struct two_sums){running_sum(addend, n, acc), running_sum(addend, n + 1, acc)};
    const struct two_sums half = halves(addend, n / 2, leaf, acc); /* of n/2 and n/2 + 1 */
    const double even = nb_rn_add(half.of_n, half.of_n, acc), odd = nb_rn_add(half.of_n, half.of_next, acc);
    struct two_sums s =
        n % 2 ? (struct two_sums){odd, nb_rn_add(half.of_next, half.of_next, acc)} : (struct two_sums){even, odd};
    if (n <= leaf) s.of_n = running_sum(addend, n, acc);
    return s;
}

static double blocks(const struct nb_design *d, double addend, int64_t n) {
    const double block = running_sum(addend, d->leaf, d->acc), rest = running_sum(addend, n % d->leaf, d->acc);
    return nb_rn_add(running_sum(block, n / d->leaf, d->acc), rest, d->acc);
}

double nb_sum_of_equals(const struct nb_design *d, double addend, int64_t n) {
    switch (d->order) {
    case NB_ORDER_PAIRWISE:
        return halves(addend, n, d->leaf, d->acc).of_n;
    case NB_ORDER_BLOCKED:
        return blocks(d, addend, n);
    case NB_ORDER_KAHAN: /* compensated: the exact sum, rounded */
        return nb_number_round(addend * (double)n, fma(addend, (double)n, -(addend * (double)n)), d->acc,
                               NB_ROUND_NEAREST, 0);
    default:
        return tree_of_lanes(d, addend, n);
    }
}

/* ---- Where running sums stop growing ---- */

static double u_acc(const struct nb_limits *l) { return nb_numbers[l->design.acc].unit_roundoff; }
static bool has_running_sums(const struct nb_limits *l) { return l->design.order == NB_ORDER_SEQUENTIAL; }

/* Elements whose squares are exact and add up to `sum`, largest first; returns how many, -1: it cannot be done. */
static int squares_adding_to(double sum, const struct nb_limits *l, double *x, int most) {
    const struct nb_design *d = &l->design;
    int n = 0;
    while (sum > 0 && n < most) {
        double v = nb_number_round(sqrt(sum), 0, d->store, NB_ROUND_ZERO, 0);
        while (v > 0 && (v * v > sum || nb_rn(v * v, d->square) != v * v || nb_rn(v * v, d->acc) != v * v))
            v = nb_next_below(v, d->store);
        if (!(v > 0)) return -1;
        x[n++] = v;
        sum -= v * v;
    }
    return sum > 0 ? -1 : n;
}

static int stagnation(const struct nb_limits *l, struct nb_limit *line) {
    if (!has_running_sums(l)) return nb_limit_says(line, "The order has no long running sum.");
    if (l->design.acc == NB_NUM_F64) return nb_limit_says(line, "An f64 sum stops growing at 2^53, beyond any row.");
    const double stop = 1 / u_acc(l);
    line->law = line->from = stop;
    if (stop > nb_numbers[l->design.acc].max_finite)
        return nb_limit_says(line, "The sum overflows before it stops growing.");
    line->safe = stop - 1;
    nb_limit_says(
        line, "Running sums of ones in %s stop growing here: %lld of them reach at most %.6g, the row has %lld.",
        nb_numbers[l->design.acc].name, (long long)l->design.lanes, stop * (double)l->design.lanes, (long long)l->n);
    return 0;
}

/* All in the first lane: elements with squares that add up to v, then a one. */
static bool one_is_lost(const struct nb_limits *l, double v, char *seen, size_t size) {
    enum { MOST = 256 };
    double parts[MOST];
    const int n = squares_adding_to(v, l, parts, MOST - 1);
    const int64_t lanes = l->design.lanes, cols = (n + 1) * lanes;
    if (n < 0) return snprintf(seen, size, "no row of exact squares adds up to %.9g", v), false;
    parts[n] = 1;
    double *x freed = nb_alloc((unsigned long long)cols, sizeof *x);
    for (int i = 0; i <= n; i++) x[i * lanes] = parts[i];
    const double s = l->execute.sum_of_squares(&l->design, cols, x, 1);
    snprintf(seen, size, "%.9g + 1 = %.9g", v, s);
    return s == v;
}

const struct nb_limit_rule nb_accumulation_rules[] = {
    {"stagnation", "accumulation", "a running sum of ones stops at", "sum", stagnation, one_is_lost, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};
