// SPDX-License-Identifier: Apache-2.0
/* What taking the mean away costs: cancellation, constant rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/accuracy/bias.h"
#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/twofold.h"
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
    const struct nb_emulated e = l->execute.row(&d, 2, x, NULL, NULL, y, l->seed);
    snprintf(seen, size, "{%.9g, %.9g}: variance %.6g, exactly 1", x[0], x[1], e.var);
    return e.var != 1;
}

/* dv / v: the sum of squares errs by (1 + rho^2) times its own, the mean's square by 2 rho^2 times the sum's, roundings after them by
 * rho^2 u; and small squares are rounded down more often than up: |x| / rms has the density p0 at 0. */
static double one_pass_error(const struct nb_limits *l, double rho) {
    struct nb_sum_law law;
    nb_sum_law(&l->design, l->n, &law);
    const double u = coarsest_u(&l->design), square = 1 + rho * rho, mean = 2 * rho * rho;
    const double p0 = NB_NORMAL_DENSITY * sqrt(square) * exp(-rho * rho / 2);
    const double bias = square * nb_stagnation_bias(law.nu, p0);
    return sqrt((square * square + mean * mean) * law.sd * law.sd + rho * rho * rho * rho * u * u + bias * bias);
}

/* Where that is `error`, by bisection. */
static double one_pass_rho(const struct nb_limits *l, double error) {
    double low = 0, high = 1e6;
    while (high - low > 1e-9 * high) {
        const double middle = (low + high) / 2;
        if (one_pass_error(l, middle) < error)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int one_pass_half(const struct nb_limits *l, struct nb_limit *line) {
    struct nb_sum_law law;
    nb_sum_law(&l->design, l->n, &law);
    const double u = coarsest_u(&l->design);
    if (!nb_op_centres(l->design.op)) return nb_limit_says(line, "RMSNorm subtracts no mean.");
    line->law = 1 / sqrt(sqrt(u));
    if (l->n < 16) return nb_limit_says(line, "Too few elements for a law.");
    if (law.nu > 0.01)
        return nb_limit_says(line, "The sums of %lld elements lose more than chance does.", (long long)l->n);
    if (nb_numbers[l->design.store].unit_roundoff > nb_numbers[l->design.acc].unit_roundoff)
        return nb_limit_says(
            line, "The squares of %s inputs share their lowest bits, which biases their roundings in %s: no law.",
            nb_numbers[l->design.store].name, nb_numbers[l->design.acc].name);
    line->from = one_pass_rho(l, sqrt(u));
    line->safe = line->from / 4;
    if (line->from < 2) return nb_limit_says(line, "In this order half of the digits are lost at any mean.");
    if (4 * line->from > 1 / nb_numbers[l->design.store].unit_roundoff || line->from > 1e5)
        return nb_limit_says(line, "Inputs of %s cannot hold a spread that small beside the mean.",
                             nb_numbers[l->design.store].name);
    snprintf(line->tolerance, sizeof line->tolerance, "relative error of the variance within a factor of 2.5");
    nb_limit_says(line,
                  "One pass over a row of %lld has half of its digits here, in this order; u^-1/4 = %.3g is the "
                  "best order's.",
                  (long long)l->n, line->law);
    return 0;
}

enum { ONE_PASS_ROWS = 40 };

static double one_pass_measured(const struct nb_limits *l, double rho) {
    enum { ROWS = ONE_PASS_ROWS };
    struct nb_design d = l->design, exact = nb_limits_isolated(l);
    double *x = nb_alloc((unsigned long long)l->n, 2 * sizeof *x), sum = 0;
    exact.op = d.op = NB_OP_LAYERNORM;
    exact.stat = NB_NUM_F64;
    exact.variance = NB_VAR_TWOPASS;
    d.variance = NB_VAR_ONEPASS;
    for (int row = 0; row < ROWS; row++) {
        nb_limits_normal_row(x, l->n, rho, 1, d.store, l->seed, (uint64_t)row);
        const double want = nb_emulate_row(&exact, l->n, x, NULL, NULL, x + l->n, l->seed).var;
        const double error = l->execute.row(&d, l->n, x, NULL, NULL, x + l->n, l->seed + (uint64_t)row).var / want - 1;
        sum += error * error / ROWS;
    }
    free(x);
    return sqrt(sum);
}
static bool one_pass_half_holds(const struct nb_limits *l, struct nb_limit *line) {
    bool holds = true;
    const double at[] = {line->from, line->safe};
    char *const seen[] = {line->at, line->beyond};
    line->power =
        1 - (1 - 1.645 / sqrt(2 * ONE_PASS_ROWS)) / 2.5; /* an rms of r rows is known to a part 1 / sqrt(2 r) */
    for (int i = 0; i < 2; i++) {
        const double got = one_pass_measured(l, at[i]), want = one_pass_error(l, at[i]);
        snprintf(seen[i], sizeof line->at, "rho %.4g: variance off by %.3g, predicted %.3g", at[i], got, want);
        holds = holds && got < 2.5 * want && (got > want / 2.5 || at[i] < 2);
    }
    return holds;
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
    struct nb_sum_law law;
    nb_sum_law(&l->design, l->n, &law);
    const int least = nb_numbers[l->design.store].emin / 2;
    if (!(l->design.eps > 0)) return 0;
    if (isinf(law.bound)) return least;
    const int exponent = ilogb(sqrt(l->design.eps / 3) / (law.bound + 3 * coarsest_u(&l->design))) - 1;
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

/* ---- How much a change of the inputs grows, whatever the kernel ---- */

static int conditioning(const struct nb_limits *l, struct nb_limit *line) {
    const bool centred = nb_op_centres(l->design.op);
    const double rho = centred ? l->rho : 0, u_in = nb_numbers[l->design.store].unit_roundoff;
    if (l->n < 3) return nb_limit_says(line, "Rows of one or two elements follow other laws.");
    line->law = line->from = sqrt(1 + rho * rho);
    snprintf(line->tolerance, sizeof line->tolerance, "within 1 %%");
    if (centred)
        nb_limit_says(line,
                      "At rho = %.4g half an ulp in the inputs of %s moves y by up to %.3g of its rms, whatever the "
                      "kernel does.",
                      rho, nb_numbers[l->design.store].name, line->law * u_in);
    else
        nb_limit_says(line, "RMSNorm amplifies nothing: errors beyond a few u are the kernel's own.");
    return 0;
}

/* Makes v orthogonal to the ones (where there is a mean) and to z. */
static void take_out(double *v, const double *z, int64_t n, bool centred) {
    double mean = 0, along = 0, length = 0;
    for (int64_t i = 0; i < n && centred; i++) mean += v[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        v[i] -= mean;
        along += v[i] * z[i];
        length += z[i] * z[i];
    }
    for (int64_t i = 0; i < n; i++) v[i] -= along / length * z[i];
}

static double norm(const double *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += v[i] * v[i];
    return sqrt(sum);
}

/* |dy| / |y| over |dx| / |x| along a direction in which nothing is lost. */
static double amplification(const struct nb_limits *l, double rho) {
    const int64_t n = l->n;
    const bool centred = nb_op_centres(l->design.op);
    double *z = nb_alloc((unsigned long long)n, 6 * sizeof *z), *dx = z + n, *x = dx + n, *moved = x + n,
           *y = moved + n, *y_moved = y + n;
    struct nb_design d = nb_limits_isolated(l);
    d.op = l->design.op;
    d.stat = NB_NUM_F64;
    d.variance = NB_VAR_TWOPASS;
    nb_limits_normal_row(z, n, 0, 1, NB_NUM_F64, l->seed, 0);
    nb_limits_normal_row(dx, n, 0, 1, NB_NUM_F64, l->seed, 1);
    double mean = 0;
    for (int64_t i = 0; i < n && centred; i++) mean += z[i] / (double)n;
    for (int64_t i = 0; i < n; i++) z[i] -= mean;
    const double sd = norm(z, n) / sqrt((double)n);
    take_out(dx, z, n, centred);
    const double step = 1e-6 * norm(z, n) / norm(dx, n);
    for (int64_t i = 0; i < n; i++) {
        x[i] = rho * sd + z[i];
        moved[i] = x[i] + step * dx[i];
    }
    l->execute.row(&d, n, x, NULL, NULL, y, l->seed);
    l->execute.row(&d, n, moved, NULL, NULL, y_moved, l->seed);
    const double size_x = norm(x, n), size_y = norm(y, n), size_dx = step * norm(dx, n);
    for (int64_t i = 0; i < n; i++) y_moved[i] -= y[i];
    const double result = norm(y_moved, n) / size_y / (size_dx / size_x);
    free(z);
    return result;
}
static bool conditioning_holds(const struct nb_limits *l, struct nb_limit *line) {
    const double rho = nb_op_centres(l->design.op) ? l->rho : 0, got = amplification(l, rho);
    snprintf(line->at, sizeof line->at, "a change of the input grew %.5g-fold", got);
    line->power = 0.01;
    return fabs(got / line->from - 1) < 0.01;
}

const struct nb_limit_rule nb_mean_rules[] = {
    {"onepass_breaks", "mean", "E[x^2] - mean^2 has no digit from", "|mean| / sigma", one_pass_breaks,
     one_pass_is_wrong, NULL},
    {"onepass_half", "mean", "E[x^2] - mean^2 has half its digits at", "|mean| / sigma", one_pass_half, NULL,
     one_pass_half_holds},
    {"constant_row", "mean", "a constant row gives |y| > 1/2 from", "|x|", constant_row, constant_row_is_saturated,
     NULL},
    {"conditioning", "mean", "condition number", "-fold", conditioning, NULL, conditioning_holds},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};
