// SPDX-License-Identifier: Apache-2.0
/* The sum of equal addends: within a binade every addition moves the sum by the same step, so that whole stretches are taken at
 * once. */
#include "src/lab/limits/sum_law.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/log.h"
#include "src/core/twofold.h"

static double added(double a, double b, enum nb_number acc) {
    const struct nb_twofold sum = nb_two_sum(a, b);
    return nb_number_round(sum.hi, isfinite(sum.hi) ? sum.lo : 0, acc, NB_ROUND_NEAREST, 0);
}

/* n times += q. Ties go to even, so that within a binade two equal steps are followed by more of the same. */
static double running_sum(double q, int64_t n, enum nb_number acc) {
    double s = 0;
    while (n > 0) {
        const double next = added(s, q, acc);
        n--;
        if (next == s || !isfinite(next)) return next;
        s = next;
        const double step = added(s, q, acc) - s, top = ldexp(1, ilogb(s) + 1);
        if (!(step > 0) || !isfinite(step) || added(s + step, q, acc) - (s + step) != step) continue;
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
    double *lane = nb_alloc((unsigned long long)lanes, sizeof *lane);
    const double more = running_sum(addend, n / lanes + 1, d->acc), fewer = running_sum(addend, n / lanes, d->acc);
    for (int64_t i = 0; i < lanes; i++) lane[i] = i < extra ? more : fewer;
    for (int64_t count = lanes; count > 1; count = (count + 1) / 2) {
        for (int64_t i = 0; i < count / 2; i++) lane[i] = added(lane[2 * i], lane[2 * i + 1], d->acc);
        if (count % 2) lane[count / 2] = lane[count - 1];
    }
    const double sum = lane[0];
    free(lane);
    return sum;
}

/* Halves differ by one element at most, so that each level has two sizes: the sums of n and n + 1 elements. */
struct two_sums {
    double of_n, of_next;
};

static struct two_sums halves(double addend, int64_t n, int64_t leaf, enum nb_number acc) {
    if (n + 1 <= leaf) return (struct two_sums){running_sum(addend, n, acc), running_sum(addend, n + 1, acc)};
    const struct two_sums half = halves(addend, n / 2, leaf, acc); /* of n/2 and n/2 + 1 */
    const double even = added(half.of_n, half.of_n, acc), odd = added(half.of_n, half.of_next, acc);
    struct two_sums s =
        n % 2 ? (struct two_sums){odd, added(half.of_next, half.of_next, acc)} : (struct two_sums){even, odd};
    if (n <= leaf) s.of_n = running_sum(addend, n, acc);
    return s;
}

static double blocks(const struct nb_design *d, double addend, int64_t n) {
    const double block = running_sum(addend, d->leaf, d->acc), rest = running_sum(addend, n % d->leaf, d->acc);
    return added(running_sum(block, n / d->leaf, d->acc), rest, d->acc);
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
