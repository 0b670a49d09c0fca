// SPDX-License-Identifier: Apache-2.0
/* The sum of equal addends: within a binade every addition moves the sum by the same step, so that whole stretches are taken at
 * once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/accuracy/bias.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/twofold.h"
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
    double *lane = nb_alloc((unsigned long long)lanes, sizeof *lane);
    const double more = running_sum(addend, n / lanes + 1, d->acc), fewer = running_sum(addend, n / lanes, d->acc);
    for (int64_t i = 0; i < lanes; i++) lane[i] = i < extra ? more : fewer;
    for (int64_t count = lanes; count > 1; count = (count + 1) / 2) {
        for (int64_t i = 0; i < count / 2; i++) lane[i] = nb_rn_add(lane[2 * i], lane[2 * i + 1], d->acc);
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

/* ---- What the running sums lose: where they stop growing, and what their order and format cost on normal rows ---- */

static double u_acc(const struct nb_limits *l) { return nb_numbers[l->design.acc].unit_roundoff; }
/* The unit of errors of the sum: the coarser of the accumulator's and the squares'. */
static double u_sum(const struct nb_limits *l) {
    return l->design.fma ? u_acc(l) : fmax(u_acc(l), nb_numbers[l->design.square].unit_roundoff);
}
static double u_out(const struct nb_limits *l) { return nb_numbers[l->design.store].unit_roundoff; }

static bool has_running_sums(const struct nb_limits *l) { return l->design.order == NB_ORDER_SEQUENTIAL; }

/* ---- equal addends ------------------------------------------------------------------------------------------------------- */

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
    double *x = nb_alloc((unsigned long long)cols, sizeof *x);
    for (int i = 0; i <= n; i++) x[i * lanes] = parts[i];
    const double s = l->execute.sum_of_squares(&l->design, cols, x, l->seed);
    snprintf(seen, size, "%.9g + 1 = %.9g", v, s);
    free(x);
    return s == v;
}

/* ---- normal rows --------------------------------------------------------------------------------------------------------- */

/* Inputs of up to 11 bits are enumerated by the law, others taken for random. */
static int inputs_say_why_not(const struct nb_limits *l, struct nb_limit *line) {
    if (u_out(l) <= u_sum(l) || nb_numbers[l->design.store].precision <= 11) return 0;
    return nb_limit_says(
        line, "The squares of %s inputs share their lowest bits, which biases their roundings in %s: no law.",
        nb_numbers[l->design.store].name, nb_numbers[l->design.acc].name);
}

struct measured {
    double mean, sd, max, gain; /* of (computed - exact) / exact of the sum of squares; gain: mean error of y */
    int rows;
};

static int rows_for(int64_t n) {
    const double rows = 3e6 / (double)n;
    return rows < 36 ? 36 : rows > 1000 ? 1000 : (int)rows;
}

/* A power of two small enough that the sums stay far from overflow. */
static double safe_sd(const struct nb_limits *l) {
    const double room =
        fmin(nb_numbers[l->design.acc].max_finite / (double)l->n / 4, nb_numbers[l->design.square].max_finite / 64);
    return room < 1 ? ldexp(1, (int)floor(log2(room) / 2)) : 1;
}

/* Squares of such rows must keep their bits: the range of e4m3 is too narrow for long rows at any scale. */
static int range_says_why_not(const struct nb_limits *l, struct nb_limit *line) {
    if (l->n < 16) return nb_limit_says(line, "Too few elements for a law.");
    const double sd = safe_sd(l),
                 quantum = fmax(nb_numbers[l->design.acc].min_subnormal, nb_numbers[l->design.square].min_subnormal);
    if (quantum <= sd * sd * u_acc(l)) return 0;
    return nb_limit_says(line, "The range of %s is too narrow for the squares of %lld elements and their sum at once.",
                         nb_numbers[l->design.acc].name, (long long)l->n);
}

static struct measured measure(const struct nb_limits *l, const struct nb_design *d) {
    struct measured m = {.rows = rows_for(l->n)};
    double *x = nb_alloc((unsigned long long)l->n, sizeof *x), squares = 0;
    for (int row = 0; row < m.rows; row++) {
        struct nb_sum exact = {0};
        nb_limits_normal_row(x, l->n, 0, safe_sd(l), d->store, l->seed, (uint64_t)row);
        nb_sum_add_squares(&exact, x, l->n);
        const double s = nb_sum_total(&exact).hi,
                     error = l->execute.sum_of_squares(d, l->n, x, l->seed + (uint64_t)row) / s - 1;
        m.mean += error / m.rows;
        m.gain += (1 / sqrt(1 + error) - 1) / m.rows;
        squares += error * error / m.rows;
        m.max = fmax(m.max, fabs(error));
    }
    m.sd = sqrt(fmax(squares - m.mean * m.mean, 0));
    free(x);
    return m;
}

static double standard_error(const struct measured *m) { return m->sd / sqrt(m->rows); }

static int bound(const struct nb_limits *l, struct nb_limit *line) {
    struct nb_sum_law law;
    if (range_says_why_not(l, line) != 0) return -1;
    nb_sum_law(&l->design, l->n, &law);
    line->law = law.bound / u_sum(l);
    if (isinf(law.bound))
        return nb_limit_says(line, "%lld roundings of %s in a chain: no bound holds any more.", (long long)law.chain,
                             nb_numbers[l->design.acc].name);
    line->from = line->law;
    nb_limit_says(
        line, "No row of %lld elements can be further off; sqrt(chain) u, which holds for unbiased errors, is %.4g u.",
        (long long)l->n, law.probable / u_sum(l));
    return 0;
}
static bool bound_holds(const struct nb_limits *l, struct nb_limit *line) {
    const struct measured m = measure(l, &l->design);
    snprintf(line->at, sizeof line->at, "largest of %d rows: %.4g u", m.rows, m.max / u_sum(l));
    line->power = 1 - m.max / u_sum(l) / line->from;
    return m.max / u_sum(l) <= line->from;
}

static int random_error(const struct nb_limits *l, struct nb_limit *line) {
    struct nb_sum_law law;
    if (range_says_why_not(l, line) != 0 || inputs_say_why_not(l, line) != 0) return -1;
    nb_sum_law(&l->design, l->n, &law);
    line->law = line->from = hypot(law.sd, law.bias) / u_sum(l);
    snprintf(line->tolerance, sizeof line->tolerance, "within 30 %% and 4 standard errors");
    nb_limit_says(line, "The usual error of the sum of squares of a normal row; y has half of it, %.3g u of %s.",
                  line->law * u_sum(l) / 2 / u_out(l), nb_numbers[l->design.store].name);
    return 0;
}
static bool random_error_holds(const struct nb_limits *l, struct nb_limit *line) {
    const struct measured m = measure(l, &l->design);
    const double rms = hypot(m.sd, m.mean), got = rms / u_sum(l);
    /* The variance of e^2 is 2 sd^4 + 4 mean^2 sd^2; that of its root by the derivative. */
    const double se = m.sd * sqrt(m.sd * m.sd / 2 + m.mean * m.mean) / rms / sqrt(m.rows) / u_sum(l);
    snprintf(line->at, sizeof line->at, "rms of %d rows: %.4g u", m.rows, got);
    line->power = nb_limit_power(0.3, se / line->from);
    return fabs(got - line->from) <= 0.3 * line->from + NB_LIMIT_ERRORS * se;
}

/* Squares of narrow numbers have few low bits, and so have their partial sums, which the law takes for random. */
static double bias_allowance(const struct nb_limits *l) { return u_out(l) > u_sum(l) ? u_sum(l) : 0; }

static int bias(const struct nb_limits *l, struct nb_limit *line) {
    struct nb_sum_law law;
    if (l->design.order == NB_ORDER_KAHAN)
        return nb_limit_says(line, "A compensated sum has no mean error of the order of u, and no law beyond.");
    if (range_says_why_not(l, line) != 0 || inputs_say_why_not(l, line) != 0) return -1;
    nb_sum_law(&l->design, l->n, &law);
    if (law.nu <= 1) line->law = nb_stagnation_bias(law.nu, NB_NORMAL_DENSITY);
    line->from = law.bias;
    snprintf(line->tolerance, sizeof line->tolerance, "within 10 %% and 4 standard errors");
    nb_limit_says(
        line,
        "Small addends are rounded down more often than up: y is too large by %.3g %%, %.3g u of %s, on every row.",
        100 * (1 / sqrt(1 + law.bias) - 1), (1 / sqrt(1 + law.bias) - 1) / u_out(l), nb_numbers[l->design.store].name);
    return 0;
}
static bool bias_holds(const struct nb_limits *l, struct nb_limit *line) {
    const struct measured m = measure(l, &l->design);
    snprintf(line->at, sizeof line->at, "mean of %d rows: %.4g +- %.2g; y %.3g %% too large", m.rows, m.mean,
             standard_error(&m), 100 * m.gain);
    const double allowed = 0.1 * fabs(line->from) + bias_allowance(l);
    line->power = nb_limit_power(allowed / fabs(line->from), standard_error(&m) / fabs(line->from));
    return fabs(m.mean - line->from) <= allowed + NB_LIMIT_ERRORS * standard_error(&m);
}

/* How much too large the law has y, in so many running sums. */
static double gain_in_lanes(const struct nb_limits *l, int64_t lanes) {
    struct nb_design d = l->design;
    struct nb_sum_law law;
    d.lanes = lanes;
    nb_sum_law(&d, l->n, &law);
    return 1 / sqrt(1 + law.bias) - 1;
}

/* The fewest that keep it below most, by bisection; the law is held to 10 %. */
static int64_t lanes_for(const struct nb_limits *l, double most) {
    int64_t too_few = 0, enough = l->n;
    while (enough - too_few > 1) {
        const int64_t middle = too_few + (enough - too_few) / 2;
        if (1.1 * gain_in_lanes(l, middle) <= most)
            enough = middle;
        else
            too_few = middle;
    }
    return enough;
}

static int lanes(const struct nb_limits *l, struct nb_limit *line) {
    if (!has_running_sums(l)) return nb_limit_says(line, "The order has no long running sum.");
    if (range_says_why_not(l, line) != 0) return -1;
    if (nb_numbers[l->design.acc].precision < 8)
        return nb_limit_says(line, "No number of lanes repairs a sum in %s: it needs a wider accumulator.",
                             nb_numbers[l->design.acc].name);
    const double gain = u_out(l) / 4;
    line->from = (double)lanes_for(l, gain);
    line->safe = floor(line->from / 2);
    line->law = line->from;
    if (line->safe < 1) line->safe = NAN;
    snprintf(line->tolerance, sizeof line->tolerance, "bias of y against u/4, within 4 standard errors");
    nb_limit_says(
        line, "This many running sums keep the bias of y below a quarter of u of %s; at most %.0f elements in each.",
        nb_numbers[l->design.store].name, ceil((double)l->n / line->from));
    return 0;
}
static bool lanes_suffice(const struct nb_limits *l, struct nb_limit *line) {
    const double gain = u_out(l) / 4, counts[] = {line->from, line->safe};
    char *const seen[] = {line->at, line->beyond};
    bool holds = true;
    for (int i = 0; i < 2 && !isnan(counts[i]); i++) {
        struct nb_design d = l->design;
        d.lanes = (int64_t)counts[i];
        const struct measured m = measure(l, &d);
        const double se = standard_error(&m) / 2, slack = NB_LIMIT_ERRORS * se;
        snprintf(seen[i], sizeof line->at, "%.0f lanes: bias of y %.3g u +- %.2g", counts[i], m.gain / u_out(l),
                 se / u_out(l));
        if (i == 0) line->power = nb_limit_power(0, se / gain);
        holds = holds && (i == 0 ? m.gain <= gain + slack : m.gain >= gain - slack);
    }
    return holds;
}

const struct nb_limit_rule nb_accumulation_rules[] = {
    {"stagnation", "accumulation", "a running sum of ones stops at", "sum", stagnation, one_is_lost, NULL},
    {"sum_bound", "accumulation", "bound on the sum of squares", "u of the sum", bound, NULL, bound_holds},
    {"sum_rms", "accumulation", "usual error of the sum of squares", "u of the sum", random_error, NULL,
     random_error_holds},
    {"sum_bias", "accumulation", "mean error of the sum of squares", "relative", bias, NULL, bias_holds},
    {"lanes", "accumulation", "lanes for a bias of y below u/4", "lanes", lanes, NULL, lanes_suffice},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};
