// SPDX-License-Identifier: Apache-2.0
#include "src/lab/limits/limits_rules.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"

int nb_limit_says(struct nb_limit *line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(line->meaning, sizeof line->meaning, format, args);
    va_end(args);
    return -1;
}

void nb_limit_downwards(struct nb_limit *line, enum nb_number number, bool (*ends)(double v, const void *arg),
                        const void *arg) {
    const double first = nb_first_representable(number, ends, arg);
    if (isfinite(first)) line->safe = first;
    const double last = nb_next_below(first, number);
    if (last > 0) line->from = last;
}

struct nb_design nb_limits_isolated(const struct nb_limits *l) {
    struct nb_design d = l->design;
    d.op = NB_OP_RMSNORM;
    d.store = d.weight = d.square = d.acc = d.root = d.rstd = d.scale = d.offset = NB_NUM_F64;
    d.order = NB_ORDER_SEQUENTIAL;
    d.lanes = 1;
    d.fma = d.folded = false;
    d.root_form = NB_ROOT_MUL_RECIP;
    d.eps_place = NB_EPS_INSIDE;
    d.cast = NB_CAST_AFTER;
    d.weight_offset = 0;
    return d;
}

void nb_limits_normal_row(double *x, int64_t n, double mean, double sd, enum nb_number number, uint64_t seed,
                          uint64_t row) {
    const struct nb_random r = nb_random_stream(seed, 0x6c696d6974 + row);
    for (int64_t i = 0; i < n; i++)
        x[i] = nb_number_round(mean + sd * nb_random_normal(r, (uint64_t)i), 0, number, NB_ROUND_NEAREST, 0);
}

struct nb_emulated nb_limits_constant_row(const struct nb_limits *l, double v, double *y) {
    double *x = nb_alloc((unsigned long long)l->n, 2 * sizeof *x);
    for (int64_t i = 0; i < l->n; i++) x[i] = v;
    const struct nb_emulated e = l->execute.row(&l->design, l->n, x, NULL, NULL, x + l->n, l->seed);
    *y = x[l->n];
    free(x);
    return e;
}

/* ---- The sum of random squares. Within a binade with spacing g a running sum grows by E[round_g(q)] at each step, with an error of
 * variance E[(round_g(q) - q)^2]; how long it stays in each binade follows, whether it keeps growing or stops. A node of a
 * tree that holds the share w of the sum adds u^2 w^2 / 6: a rounding error is uniform, and (2^e / s)^2 is 1/2 on average. ---- */

/* What is added at each step: the square of a normal number, or a sum of `mean` of them, which is nearly normal itself.
 * Squares of few bits are far from any value in their lowest ones (an odd number's square is 1 modulo 8), so that the squares of
 * a narrow format are taken one by one. */
struct addend {
    double mean, sd;
    bool is_square;
    double *squares, *shares; /* of a narrow format's positive numbers; null: any number */
    int n;
};

static struct addend sums_of_squares(double count) { return (struct addend){.mean = count, .sd = sqrt(2 * count)}; }

static double normal_above(double t) { return erfc(t / sqrt(2)); } /* P(|x| >= t) */

/* Down to 2^-24, squares below which are nothing. */
static struct addend square_of(const struct nb_design *d) {
    const enum nb_number store = d->store;
    struct addend q = {.mean = 1, .sd = sqrt(2), .is_square = true};
    if (nb_numbers[store].precision > 11) return q;
    const double most = fmin(10, nb_numbers[store].max_finite), least = fmax(0x1p-24, nb_numbers[store].min_subnormal);
    const int capacity = 32 << nb_numbers[store].precision;
    q.squares = nb_alloc((unsigned long long)capacity, 2 * sizeof *q.squares);
    q.shares = q.squares + capacity;
    double below = 0;
    for (double v = least; v <= most && q.n < capacity;) {
        const double next = nb_next_above(v, store), from = q.n > 0 ? (below + v) / 2 : v / 2, to = (v + next) / 2;
        q.squares[q.n] = d->fma ? v * v : nb_number_round(v * v, 0, d->square, NB_ROUND_NEAREST, 0);
        q.shares[q.n++] = normal_above(from) - (isfinite(next) ? normal_above(to) : 0);
        below = v;
        v = next;
    }
    double mean = 0;
    for (int i = 0; i < q.n; i++) mean += q.shares[i] * q.squares[i];
    for (int i = 0; i < q.n; i++) q.shares[i] /= mean; /* of a sum of 1 */
    return q;
}

/* P(q >= t) */
static double reaches(const struct addend *q, double t) {
    if (q->is_square) return t > 0 ? erfc(sqrt(t / 2)) : 1;
    return erfc((t - q->mean) / (q->sd * sqrt(2))) / 2;
}

struct moments {
    double mean, variance;
};

/* One square in units of the spacing. */
struct step {
    double whole, rest; /* below and above the multiple under it */
    bool whole_is_odd;
};

static struct step in_units(double square, double g) {
    const double t = square / g, whole = floor(t);
    return (struct step){whole, t - whole, fmod(whole, 2) != 0};
}

/* How often a running sum is an odd multiple of the spacing: a tie makes it even, an odd step turns it over. */
static double share_odd(const struct addend *q, double g) {
    double turned = 0, tied = 0;
    for (int i = 0; i < q->n; i++) {
        const struct step s = in_units(q->squares[i], g);
        if (s.rest == 0.5)
            tied += q->shares[i];
        else if (s.whole_is_odd != (s.rest > 0.5))
            turned += q->shares[i];
    }
    return turned > 0 ? turned / (tied + 2 * turned) : 0;
}

/* Over the squares one by one. A tie goes up where that makes the sum even. */
static struct moments step_of_narrow(const struct addend *q, double g, enum nb_rounding rounding) {
    const double odd = share_odd(q, g);
    double steps = 0, errors = 0, squares = 0;
    for (int i = 0; i < q->n; i++) {
        const struct step s = in_units(q->squares[i], g);
        double up = s.rest > 0.5;
        if (s.rest == 0.5) up = s.whole_is_odd ? 1 - odd : odd;
        if (rounding == NB_ROUND_ZERO) up = 0;
        const double p = q->shares[i], below = -s.rest * g, above = (1 - s.rest) * g;
        steps += p * (s.whole + up) * g;
        errors += p * ((1 - up) * below + up * above);
        squares += p * ((1 - up) * below * below + up * above * above);
    }
    return (struct moments){steps, squares - errors * errors};
}

/* Does the density vary so little over a spacing that what rounding does is in closed form? That of a square is unbounded at 0. */
static bool is_fine(const struct addend *q, double g) { return g < (q->is_square ? 1.0 / 64 : q->sd); }

/* E[round_g(q)]. Near 0 the density of a square is p0 q^-1/2 / 2 with p0 = sqrt(2/pi), and the integral of (round(t) - t) t^-1/2 is
 * -0.12184, so that the mean of a square loses 0.0486 g^1.5. */
static double expected_step(const struct addend *q, double g, enum nb_rounding rounding) {
    if (rounding == NB_ROUND_STOCHASTIC) return q->mean;
    const bool truncated = rounding == NB_ROUND_ZERO;
    if (is_fine(q, g)) {
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
    if (is_fine(q, g)) return g * g / 12;
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

static struct moments step_of(const struct addend *q, double g, enum nb_rounding rounding) {
    if (q->squares && rounding != NB_ROUND_STOCHASTIC) return step_of_narrow(q, g, rounding);
    return (struct moments){expected_step(q, g, rounding), step_variance(q, g, rounding)};
}

/* P(S < s) of a sum S of k addends with the mean `mean`, that of a chi square of as many degrees of freedom as give its variance, by the
 * cube root of Wilson and Hilferty (1931). */
static double sum_is_below(const struct addend *q, double k, double mean, double s) {
    const double spread = q->sd * q->sd / (9 * k * q->mean * q->mean); /* 2 / (9 degrees) */
    return erfc((1 - spread - cbrt(s / mean)) / sqrt(2 * spread)) / 2;
}

enum { LEAST_BINADE = -32, N_BINADES = 96 };

/* What a running sum does in each binade, found when it is first met. */
struct steps {
    const struct addend *q;
    const struct nb_design *d;
    struct moments of[N_BINADES];
    bool known[N_BINADES];
};

static struct moments step_in(struct steps *s, int e) {
    const int i = e - LEAST_BINADE;
    assert(i >= 0 && i < N_BINADES);
    if (!s->known[i]) s->of[i] = step_of(s->q, ldexp(2 * nb_numbers[s->d->acc].unit_roundoff, e), s->d->rounding);
    s->known[i] = true;
    return s->of[i];
}

/* The next addend, over the binades in which the sum of k that came before may be. */
static struct moments next_step(struct steps *s, double k, double mean) {
    struct moments m = {0, 0};
    double below = 0;
    const int top = ilogb(mean);
    for (int e = top - 8; e <= top + 4; e++) {
        const double up_to = e < top + 4 ? sum_is_below(s->q, k, mean, ldexp(1, e + 1)) : 1, share = up_to - below;
        if (share <= 1e-9) continue;
        const struct moments step = step_in(s, e);
        m.mean += share * step.mean;
        m.variance += share * step.variance;
        below = up_to;
    }
    return m;
}

/* `steps` addends one after another, the first as it is, later ones in stretches of a sixteenth of what came before. */
static struct moments running(const struct addend *q, double steps, const struct nb_design *d) {
    struct steps in_binades = {.q = q, .d = d};
    struct moments m = {fmin(steps, 1) * q->mean, 0};
    for (double k = 1, stretch; k < steps; k += stretch) {
        stretch = fmin(fmax(floor(k / 16), 1), steps - k);
        const struct moments step = next_step(&in_binades, k + (stretch - 1) / 2, m.mean * (1 + (stretch - 1) / 2 / k));
        m.mean += stretch * step.mean;
        m.variance += stretch * step.variance;
    }
    return m;
}

/* Nodes of a tree over `leaves` equal parts, the root included: 1 + 1/2 + 1/4 ... of u^2 / 6. */
static double tree_variance(double leaves, double u) { return leaves > 1 ? u * u / 6 * (2 - 2 / leaves) : 0; }

/* Numbers from u P / 2 below a power of two P to u P above it are rounded to P, on average by -3/8 (u P)^2 times their density there: of each
 * node, whose sum of squares of normal numbers has the variance 2 k about k, in parts of the whole sum n. */
static double tree_bias(double leaves, double n, double u) {
    double bias = 0;
    for (double nodes = 1; nodes < leaves; nodes *= 2) {
        const double k = n / nodes;
        for (int e = ilogb(k) - 1; e <= ilogb(k) + 1; e++) {
            const double power = ldexp(1, e),
                         density = exp(-(power - k) * (power - k) / (4 * k)) / sqrt(4 * acos(-1) * k);
            bias -= 0.375 * u * u * power * power * density * nodes / n;
        }
    }
    return bias;
}

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
    const struct addend square = square_of(d);
    const struct moments part = running(&square, p.size, d);
    free(square.squares);
    double bias = part.mean / p.size - 1, variance = part.variance / p.size / n;
    if (d->order == NB_ORDER_BLOCKED) {
        const struct addend block = sums_of_squares(p.size);
        const struct moments whole = running(&block, p.count, d);
        bias += whole.mean / n - 1;
        variance += whole.variance / n / n;
    } else {
        variance += tree_variance(p.count, u);
        if (d->rounding == NB_ROUND_NEAREST) bias += tree_bias(p.count, n, u);
    }
    out->bias = bias;
    out->sd = sqrt(variance + squares);
}

void nb_sum_law(const struct nb_design *d, int64_t n, struct nb_sum_law *out) {
    assert(n >= 1);
    const double u = nb_numbers[d->acc].unit_roundoff;
    *out = (struct nb_sum_law){.chain = nb_design_chain(d, n)};
    const double u_square = d->fma ? 0 : nb_numbers[d->square].unit_roundoff;
    const double h = (double)out->chain, growth = h * u + (u_square > u ? u_square : 0);
    out->bound = growth < 1 ? growth / (1 - growth) : (double)INFINITY;
    out->probable = sqrt(h) * u;
    if (d->order != NB_ORDER_KAHAN) {
        const struct parts p = parts_of(d, (double)n);
        out->nu = u * (d->order == NB_ORDER_BLOCKED ? fmax(p.size, p.count) : p.size);
    }
    random_squares(d, (double)n, out);
}
