// SPDX-License-Identifier: Apache-2.0
/* Where running sums stop growing, and what taking the mean away costs. */
#include <math.h>
#include <stdio.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/lab/limits/limits.h"

/* ---- sums of ones ---------------------------------------------------------------------------------------------------------- */

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
    const double s = nb_emulate_sum_of_squares(&l->design, cols, x, 1);
    snprintf(seen, size, "%.9g + 1 = %.9g", v, s);
    return s == v;
}

/* ---- E[x^2] - mean^2 ------------------------------------------------------------------------------------------------------- */

/* The row {R - 1, R + 1} has the variance 1; as the formats see it. */
static double one_pass_of_pair(double r, const struct nb_design *d) {
    const double a = nb_rn_mul(r - 1, r - 1, d->square), b = nb_rn_mul(r + 1, r + 1, d->square);
    const double squares = nb_rn_add(nb_rn(a, d->acc), b, d->acc);
    const double mean = nb_rn(nb_rn_add(r - 1, r + 1, d->acc) / 2, d->stat);
    return nb_rn_add(nb_rn(squares / 2, d->stat), -nb_rn_mul(mean, mean, d->stat), d->stat);
}

static double coarsest_u(const struct nb_design *d) {
    return fmax(nb_numbers[d->acc].unit_roundoff,
                fmax(nb_numbers[d->stat].unit_roundoff, nb_numbers[d->square].unit_roundoff));
}

static int one_pass_breaks(const struct nb_limits *l, struct nb_limit *line) {
    const struct nb_design *d = &l->design;
    const double u = coarsest_u(d), most = 1 / nb_numbers[d->store].unit_roundoff;
    if (!nb_op_centres(l->design.op)) return nb_limit_says(line, "RMSNorm subtracts no mean.");
    line->law = 1 / sqrt(u);
    if (line->law > 1e5) return nb_limit_says(line, "In f64 this is beyond what inputs can hold.");
    for (double r = 2; r < 2 * line->law + 2 && isnan(line->from); r++) {
        if (r + 1 > most)
            return nb_limit_says(line,
                                 "Inputs of %s cannot hold a spread that small beside the mean: one pass in %s is "
                                 "enough for them.",
                                 nb_numbers[d->store].name, nb_numbers[d->acc].name);
        if (one_pass_of_pair(r, d) != 1) line->from = r;
    }
    line->safe = line->from - 1;
    if (line->safe < 2) line->safe = NAN;
    nb_limit_says(line, "E[x^2] - mean^2 has no correct digit from here: take two passes, Welford or a shift.");
    return 0;
}
static bool one_pass_is_wrong(const struct nb_limits *l, double v, char *seen, size_t size) {
    struct nb_design d = l->design;
    const double x[2] = {v - 1, v + 1};
    double y[2];
    d.op = NB_OP_LAYERNORM;
    d.variance = NB_VAR_ONEPASS;
    d.fma = false;
    const struct nb_emulated e = nb_emulate_row(&d, 2, x, NULL, NULL, y, 1);
    snprintf(seen, size, "{%.9g, %.9g}: variance %.6g, exactly 1", x[0], x[1], e.var);
    return e.var != 1;
}

const struct nb_limit_rule nb_sum_rules[] = {
    {"stagnation", "accumulation", "a running sum of ones stops at", "sum", stagnation, one_is_lost, NULL},
    {"onepass_breaks", "mean", "E[x^2] - mean^2 has no digit from", "|mean| / sigma", one_pass_breaks,
     one_pass_is_wrong, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};
