// SPDX-License-Identifier: Apache-2.0
/* Squares, sums and outputs that leave the range. A square of two numbers of 24 bits is exact in a double, so that one fused
 * operation gives the sign of any difference exactly. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/lab/limits/limits.h"

/* ---- one square -------------------------------------------------------------------------------------------------------- */

/* A square passes through its own format, unless it is fused with the addition, and the accumulator's. */
static enum nb_number least_overflow(const struct nb_design *d) {
    return d->fma || nb_numbers[d->acc].overflow < nb_numbers[d->square].overflow ? d->acc : d->square;
}
static enum nb_number least_underflow(const struct nb_design *d) {
    return d->fma || nb_numbers[d->acc].min_subnormal > nb_numbers[d->square].min_subnormal ? d->acc : d->square;
}

/* x^2 >= *limit */
static bool square_reaches(double x, const void *limit) { return fma(x, x, -*(const double *)limit) >= 0; }
static bool square_exceeds(double x, const void *limit) { return fma(x, x, -*(const double *)limit) > 0; }

static double square_of(const struct nb_limits *l, double x, char *seen, size_t size) {
    const double s = nb_emulate_sum_of_squares(&l->design, 1, &x, 1);
    snprintf(seen, size, "square of %.9g: %.6g", x, s);
    return s;
}

/* from = the least number of the format at which `holds` begins, safe = the one below. */
static void begin_upwards(struct nb_limit *line, enum nb_number number, bool (*holds)(double v, const void *arg),
                          const void *arg) {
    const double first = nb_first_representable(number, holds, arg);
    line->safe = nb_next_below(first, number);
    if (isfinite(first)) line->from = first;
}

static int square_overflow(const struct nb_limits *l, struct nb_limit *line) {
    const enum nb_number number = least_overflow(&l->design);
    const double limit = nb_numbers[number].overflow;
    line->law = sqrt(limit);
    begin_upwards(line, l->design.store, square_reaches, &limit);
    if (isnan(line->from))
        nb_limit_says(line, "No %s value has a square beyond %s.", nb_numbers[l->design.store].name,
                      nb_numbers[number].name);
    else
        nb_limit_says(line,
                      "From here on a single element makes the row %s: square in a wider format, or scale the row "
                      "by a power of two first.",
                      nb_op_centres(l->design.op) || !nb_number_has_inf(number) ? "NaN" : "0");
    return 0;
}
static bool square_is_infinite(const struct nb_limits *l, double v, char *seen, size_t size) {
    return !isfinite(square_of(l, v, seen, size));
}

static int square_vanishes(const struct nb_limits *l, struct nb_limit *line) {
    const struct nb_format *f = &nb_numbers[least_underflow(&l->design)];
    const double tie = f->min_subnormal / 2, normal = f->min_normal - f->min_subnormal / 2;
    line->law = l->design.flush ? sqrt(normal) : sqrt(tie);
    if (l->design.flush)
        nb_limit_downwards(line, l->design.store, square_reaches, &normal);
    else
        nb_limit_downwards(line, l->design.store, square_exceeds, &tie);
    if (isnan(line->from))
        return nb_limit_says(line, "The smallest %s value has a square in %s.", nb_numbers[l->design.store].name,
                             f->name),
               0;
    nb_limit_says(line,
                  "A row of such elements has a mean square of 0: with eps = 0 it becomes NaN, else x / sqrt(eps).");
    return 0;
}
static bool square_is_zero(const struct nb_limits *l, double v, char *seen, size_t size) {
    return square_of(l, v, seen, size) == 0;
}

static int square_subnormal(const struct nb_limits *l, struct nb_limit *line) {
    const struct nb_format *f = &nb_numbers[least_underflow(&l->design)];
    const double normal = f->min_normal - f->min_subnormal / 2;
    line->law = sqrt(f->min_normal);
    nb_limit_downwards(line, l->design.store, square_reaches, &normal);
    if (isnan(line->from))
        return nb_limit_says(line, "Squares of %s values are normal numbers of %s.", nb_numbers[l->design.store].name,
                             f->name),
               0;
    nb_limit_says(line, "Squares up to here keep fewer than %d bits, and are 0 on hardware that flushes subnormals.",
                  f->precision);
    return 0;
}
static bool square_is_subnormal(const struct nb_limits *l, double v, char *seen, size_t size) {
    return square_of(l, v, seen, size) < nb_numbers[least_underflow(&l->design)].min_normal;
}

/* ---- sums -------------------------------------------------------------------------------------------------------------- */

/* n equal elements: their exact sum, or that of their squares. */
struct equal_row {
    const struct nb_limits *l;
    bool squared;
};

static bool exact_sum_overflows(double x, const void *arg) {
    const struct equal_row *row = arg;
    const double limit = nb_numbers[row->l->design.acc].overflow;
    return fma(row->squared ? x * x : x, (double)row->l->n, -limit) >= 0;
}

static int exact_overflow(const struct nb_limits *l, struct nb_limit *line, bool squared) {
    const struct equal_row row = {l, squared};
    const double share = nb_numbers[l->design.acc].overflow / (double)l->n;
    line->law = squared ? sqrt(share) : share;
    begin_upwards(line, l->design.store, exact_sum_overflows, &row);
    nb_limit_says(line,
                  isnan(line->from) ? "No sum of %lld of them leaves %s."
                                    : "A sum of %lld of them in %s that has lost nothing is infinite from here on.",
                  (long long)l->n, nb_numbers[l->design.acc].name);
    return 0;
}
static bool exact_sum_is_infinite(const struct nb_limits *l, double v, char *seen, size_t size, bool squared) {
    const double term = squared ? v * v : v, n = (double)l->n, exact = term * n;
    const double stored = nb_number_round(exact, fma(term, n, -exact), l->design.acc, NB_ROUND_NEAREST, 0);
    snprintf(seen, size, "%lld times %.9g%s is %.9g, rounded %.6g", (long long)l->n, v, squared ? "^2" : "", exact,
             stored);
    return !isfinite(stored);
}
static int squares_overflow(const struct nb_limits *l, struct nb_limit *line) { return exact_overflow(l, line, true); }
static bool squares_are_infinite(const struct nb_limits *l, double v, char *seen, size_t size) {
    return exact_sum_is_infinite(l, v, seen, size, true);
}
static int mean_overflow(const struct nb_limits *l, struct nb_limit *line) {
    if (!nb_op_centres(l->design.op)) return nb_limit_says(line, "RMSNorm computes no mean.");
    return exact_overflow(l, line, false);
}
static bool mean_is_infinite(const struct nb_limits *l, double v, char *seen, size_t size) {
    return exact_sum_is_infinite(l, v, seen, size, false);
}

/* ---- output ------------------------------------------------------------------------------------------------------------ */

/* |y| <= sqrt(n) |gamma|, with equality for a row of one non-zero element; centred, sqrt(n - 1). */
static double peak_squared(const struct nb_limits *l) {
    return (double)(nb_op_centres(l->design.op) ? l->n - 1 : l->n);
}

static bool output_overflows(double gamma, const void *arg) {
    const struct nb_limits *l = arg;
    const double limit = nb_numbers[l->design.store].overflow;
    return fma(gamma * gamma, peak_squared(l), -limit * limit) >= 0;
}

static enum nb_number weight_format(const struct nb_limits *l) {
    return l->design.weight == NB_NUM_F64 ? NB_NUM_F32 : l->design.weight;
}

static int output_overflow(const struct nb_limits *l, struct nb_limit *line) {
    const double peak = sqrt(peak_squared(l));
    if (l->n < 2 && nb_op_centres(l->design.op)) return nb_limit_says(line, "A row of one element is 0.");
    line->law = nb_numbers[l->design.store].overflow / peak;
    begin_upwards(line, weight_format(l), output_overflows, l);
    const double most = peak * l->gamma_max;
    if (isnan(most))
        nb_limit_says(line, "The largest |y| is %.6g |gamma|, reached by a row with one non-zero element.", peak);
    else
        nb_limit_says(line, "The largest |y| is %.6g * %.6g = %.6g: %s.", peak, l->gamma_max, most,
                      most < nb_numbers[l->design.store].overflow ? "it fits" : "beyond the range");
    return 0;
}
static bool output_is_infinite(const struct nb_limits *l, double v, char *seen, size_t size) {
    struct nb_design d = nb_limits_isolated(l);
    double *x freed = nb_alloc((unsigned long long)l->n, 3 * sizeof *x), *gamma = x + l->n, *y = gamma + l->n;
    d.op = l->design.op;
    d.variance = NB_VAR_TWOPASS;
    d.store = l->design.store;
    d.stat = NB_NUM_F64;
    d.eps = 0;
    for (int64_t i = 0; i < l->n; i++) gamma[i] = v;
    x[0] = 1;
    nb_emulate_row(&d, l->n, x, gamma, NULL, y, 1);
    const bool infinite = !isfinite(y[0]);
    snprintf(seen, size, "one element, gamma %.9g: y %.6g", v, y[0]);
    return infinite;
}

const struct nb_limit_rule nb_range_rules[] = {
    {"square_overflow", "range", "a square overflows from", "|x|", square_overflow, square_is_infinite, NULL},
    {"square_vanishes", "range", "a square is 0 up to", "|x|", square_vanishes, square_is_zero, NULL},
    {"square_subnormal", "range", "a square is subnormal up to", "|x|", square_subnormal, square_is_subnormal, NULL},
    {"sum_overflow", "range", "the sum of squares overflows from", "rms", squares_overflow, squares_are_infinite, NULL},
    {"mean_overflow", "range", "the sum of x overflows from", "|mean|", mean_overflow, mean_is_infinite, NULL},
    {"output_overflow", "range", "y overflows from", "|gamma|", output_overflow, output_is_infinite, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};
