// SPDX-License-Identifier: Apache-2.0
/* What taking the mean away costs: cancellation, constant rows. */
#include <math.h>
#include <stdio.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/lab/limits/limits_rules.h"

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
    const struct nb_emulated e = l->execute.row(&d, 2, x, NULL, NULL, y, 1);
    snprintf(seen, size, "{%.9g, %.9g}: variance %.6g, exactly 1", x[0], x[1], e.var);
    return e.var != 1;
}

/* ---- constant rows --------------------------------------------------------------------------------------------------------- */

/* |y| of a row of c, that should be 0: the mean is off by delta, the same for all, and the variance is delta^2 as summed up. */
static double constant_output(const struct nb_limits *l, double c) {
    const struct nb_design *d = &l->design;
    const double n = (double)l->n, sum = nb_sum_of_equals(d, c, l->n);
    if (!isfinite(sum)) return (double)INFINITY;
    const double mean = nb_rn_div(sum, n, d->stat), delta = nb_rn_add(c, -mean, d->square);
    if (delta == 0) return 0;
    const double square = d->fma ? delta * delta : nb_rn_mul(delta, delta, d->square);
    const double var = nb_rn_div(nb_sum_of_equals(d, square, l->n), n, d->stat);
    const double v = nb_rn_add(var, nb_rn(d->eps, d->stat), d->stat), root = nb_rn_sqrt(v, d->root);
    const double rstd = nb_rn(nb_rn_div(1, root, d->root), d->rstd);
    return fabs(nb_rn(nb_rn_mul(nb_rn_add(c, -mean, d->scale), rstd, d->scale), d->store));
}

static bool is_saturated(const struct nb_limits *l, double c) { return constant_output(l, c) >= 0.5; }

enum { CONSTANTS_IN_BINADE = 1 << 14 };

static int constants_in_binade(const struct nb_limits *l) {
    const int bits = nb_numbers[l->design.store].precision - 1;
    return bits < 14 ? 1 << bits : CONSTANTS_IN_BINADE;
}

static double constant_at(const struct nb_limits *l, int exponent, int i) {
    return ldexp(1 + (double)i / constants_in_binade(l), exponent);
}

static double saturated_share(const struct nb_limits *l, int exponent) {
    int saturated = 0;
    for (int i = 0; i < constants_in_binade(l); i++) saturated += is_saturated(l, constant_at(l, exponent, i));
    return (double)saturated / constants_in_binade(l);
}

/* Below it the mean's error, at most (bound + 2 u) |c|, stays small beside sqrt(eps). Without eps all binades are alike. */
static int first_exponent(const struct nb_limits *l) {
    const struct nb_design *d = &l->design;
    const double u = nb_numbers[d->acc].unit_roundoff, u_square = d->fma ? 0 : nb_numbers[d->square].unit_roundoff,
                 growth = (double)nb_design_chain(d, l->n) * u + (u_square > u ? u_square : 0);
    const int least = nb_numbers[d->store].emin / 2;
    if (!(d->eps > 0)) return 0;
    if (growth >= 1) return least;
    const int exponent = ilogb(sqrt(d->eps / 3) / (growth / (1 - growth) + 3 * coarsest_u(d))) - 1;
    return exponent < least ? least : exponent;
}

static int constant_row(const struct nb_limits *l, struct nb_limit *line) {
    const struct nb_format *f = &nb_numbers[l->design.store];
    const int count = constants_in_binade(l);
    if (!nb_op_centres(l->design.op)) return nb_limit_says(line, "RMSNorm of a constant row is +-1, which is right.");
    if (l->design.variance != NB_VAR_TWOPASS || l->design.root_form != NB_ROOT_MUL_RECIP ||
        l->design.eps_place != NB_EPS_INSIDE || l->design.folded || l->design.flush)
        return nb_limit_says(
            line, "Predicted for two passes and x * (1 / sqrt(v + eps)); `normbench stress` has such rows for all.");
    const int last = ilogb(f->max_finite / (double)l->n / 2);
    double before = NAN;
    for (int e = first_exponent(l); e <= last; e++)
        for (int i = 0; i < count; i++) {
            const double c = constant_at(l, e, i);
            if (is_saturated(l, c)) {
                line->from = c;
                line->safe = before;
                nb_limit_says(line,
                              "The mean is rounded, and the rest is normalized to +-1: %.3g %% of the constants from "
                              "%.4g to %.4g do so. An f64 or corrected mean gives 0.",
                              100 * saturated_share(l, e), ldexp(1, e), ldexp(1, e + 1));
                return 0;
            }
            before = c;
        }
    line->safe = before;
    nb_limit_says(line, "No constant row of %lld that was tried comes out above 1/2.", (long long)l->n);
    return 0;
}
static bool constant_row_is_saturated(const struct nb_limits *l, double v, char *seen, size_t size) {
    double y;
    const struct nb_emulated e = nb_limits_constant_row(l, v, &y);
    snprintf(seen, size, "row of %.9g: mean off by %.3g, y %.4g", v, e.mean - v, y);
    return fabs(y) >= 0.5;
}

const struct nb_limit_rule nb_mean_rules[] = {
    {"onepass_breaks", "mean", "E[x^2] - mean^2 has no digit from", "|mean| / sigma", one_pass_breaks,
     one_pass_is_wrong, NULL},
    {"constant_row", "mean", "a constant row gives |y| > 1/2 from", "|x|", constant_row, constant_row_is_saturated,
     NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};
