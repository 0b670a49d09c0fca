// SPDX-License-Identifier: Apache-2.0
/* The sum of random squares. Within a binade with spacing g a running sum grows by E[round_g(q)] at each step, with an error of
 * variance E[(round_g(q) - q)^2]; how long it stays in each binade follows, whether it is healthy or stands still. A node of a
 * tree that holds the share w of the sum adds u^2 w^2 / 6: a rounding error is uniform, and (2^e / s)^2 is 1/2 on average. */
#include "src/sum_law.h"

#include <math.h>
#include <stdbool.h>

/* What is added at each step: the square of a normal number, or a sum of `mean` of them, which is nearly normal itself. */
struct addend {
    double mean, sd;
    bool is_square;
};

static struct addend squares_summed(double count) {
    return count > 1 ? (struct addend){count, sqrt(2 * count), false} : (struct addend){1, sqrt(2), true};
}

/* P(q >= t) */
static double reaches(const struct addend *q, double t) {
    if (q->is_square) return t > 0 ? erfc(sqrt(t / 2)) : 1;
    return erfc((t - q->mean) / (q->sd * sqrt(2))) / 2;
}

/* Below this spacing in units of the addend, what rounding does to the mean is in closed form. */
static const double fine = 1.0 / 64;

/* E[round_g(q)]. Near 0 the density of a square is p0 q^-1/2 / 2 with p0 = sqrt(2/pi), and the integral of (round(t) - t) t^-1/2 is
 * -0.12184, so that the mean of a square loses 0.0486 g^1.5. */
static double expected_step(const struct addend *q, double g, enum nb_rounding rounding) {
    if (rounding == NB_ROUND_STOCHASTIC) return q->mean;
    const bool truncated = rounding == NB_ROUND_ZERO;
    if (g < fine * q->mean) {
        if (truncated) return q->mean - g / 2;
        return q->is_square ? 1 - 0.048606 * g * sqrt(g) : q->mean;
    }
    double sum = 0, p = 1;
    for (double k = 1; p > 1e-18 && k < 1e6; k++) sum += p = reaches(q, (truncated ? k : k - 0.5) * g);
    return g * sum;
}

/* E[(round_g(q) - q)^2] less the square of its mean. */
static double step_variance(const struct addend *q, double g, enum nb_rounding rounding) {
    if (rounding == NB_ROUND_STOCHASTIC) return g * g / 6;
    if (g < fine * q->mean) return g * g / 12;
    enum { POINTS = 4001 };
    const double reach = 8, width = 2 * reach / (POINTS - 1);
    double weight = 0, sum = 0, squares = 0;
    for (int i = 0; i < POINTS; i++) {
        const double z = -reach + width * i, w = exp(-z * z / 2), x = q->is_square ? z * z : q->mean + q->sd * z;
        const double e = (rounding == NB_ROUND_ZERO ? floor(x / g) : rint(x / g)) * g - x;
        weight += w;
        sum += w * e;
        squares += w * e * e;
    }
    const double mean = sum / weight;
    return squares / weight - mean * mean;
}

struct sum_moments {
    double sum, variance;
};

/* `steps` addends one after another. */
static struct sum_moments running(struct addend q, double steps, const struct nb_design *d) {
    const double u = nb_numbers[d->acc].unit_roundoff;
    struct sum_moments m = {0, 0};
    double left = steps;
    for (int e = ilogb(q.mean); left > 0; e++) {
        const double g = ldexp(2 * u, e), room = ldexp(1, e + 1) - m.sum;
        const double step = expected_step(&q, g, d->rounding);
        const double taken = step * left > room ? room / step : left;
        m.sum += taken * step;
        m.variance += taken * step_variance(&q, g, d->rounding);
        left = taken < left ? left - taken : 0;
    }
    return m;
}

/* Nodes of a tree over `leaves` equal parts, the root included: 1 + 1/2 + 1/4 ... of u^2 / 6. */
static double tree_variance(double leaves, double u) { return leaves > 1 ? u * u / 6 * (2 - 2 / leaves) : 0; }

struct parts {
    double count, size; /* independent running sums of `size` squares each */
};

static struct parts parts_of(const struct nb_design *d, double n) {
    double count = (double)d->lanes;
    if (d->order == NB_ORDER_PAIRWISE) count = exp2(ceil(log2(fmax(n / (double)d->leaf, 1))));
    if (d->order == NB_ORDER_BLOCKED) count = fmax(n / (double)d->leaf, 1);
    if (count > n) count = n;
    return (struct parts){count, n / count};
}

static void random_squares(const struct nb_design *d, double n, struct nb_sum_law *out) {
    const double u = nb_numbers[d->acc].unit_roundoff, u_square = nb_numbers[d->square].unit_roundoff;
    const double squares = d->fma ? 0 : 3 * u_square * u_square / 6 / n;
    if (d->order == NB_ORDER_KAHAN) {
        const double lanes = fmin((double)d->lanes, n);
        out->sd = sqrt(u * u / 6 / lanes + tree_variance(lanes, u) + squares);
        return;
    }
    const struct parts p = parts_of(d, n);
    const struct sum_moments part = running(squares_summed(1), p.size, d);
    double bias = part.sum / p.size - 1, variance = part.variance / p.size / n;
    if (d->order == NB_ORDER_BLOCKED) {
        const struct sum_moments whole = running(squares_summed(p.size), p.count, d);
        bias += whole.sum / n - 1;
        variance += whole.variance / n / n;
    } else {
        variance += tree_variance(p.count, u);
    }
    out->bias = bias;
    out->sd = sqrt(variance + squares);
}

void nb_sum_law(const struct nb_design *d, int64_t n, struct nb_sum_law *out) {
    const double u = nb_numbers[d->acc].unit_roundoff;
    *out = (struct nb_sum_law){.chain = nb_design_chain(d, n)};
    const double h = (double)out->chain, growth = h * u;
    out->bound = growth < 1 ? growth / (1 - growth) : (double)INFINITY;
    out->probable = sqrt(h) * u;
    if (d->order != NB_ORDER_KAHAN) {
        const struct parts p = parts_of(d, (double)n);
        out->nu = u * (d->order == NB_ORDER_BLOCKED ? fmax(p.size, p.count) : p.size);
    }
    random_squares(d, (double)n, out);
}

/* 0.34460 / 2 * 2 (1 - 1/sqrt 2) * 2/5: the integral of (round_2(t) - t) t^-1/2, half of the density's 1/2, the binade's mean. */
static const double small_law = 0.0404;

double nb_small_bias(double nu, double density) { return -small_law * density * nu * sqrt(nu); }

int64_t nb_lanes_for(int64_t n, double u_acc, double gain) {
    const double normal = sqrt(2 / acos(-1)), nu = cbrt(2 * gain / (small_law * normal));
    const double lanes = ceil((double)n * u_acc / (nu * nu));
    return lanes < 1 ? 1 : lanes > (double)n ? n : (int64_t)lanes;
}
