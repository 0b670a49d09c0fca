// SPDX-License-Identifier: Apache-2.0
/* What becomes of eps, and of 1 / sqrt(v + eps). */
#include <math.h>
#include <stdio.h>

#include "src/core/dtype.h"
#include "src/lab/limits/limits.h"

static const struct nb_format *stat(const struct nb_limits *l) { return &nb_numbers[l->design.stat]; }

/* As a constant is stored; 0 under flush to zero when it is subnormal. */
static double stored_eps(const struct nb_limits *l) {
    const double eps = nb_rn(l->design.eps, l->design.stat);
    return l->design.flush && eps < stat(l)->min_normal ? 0 : eps;
}

/* 1 / sqrt(v + eps) of a row of one element, and from it v + eps: the design must have its root in f64. */
static double sum_with_eps(const struct nb_design *d, double x) {
    double y;
    const double rstd = nb_emulate_row(d, 1, &x, NULL, NULL, &y, 1).rstd;
    if (isinf(rstd)) return 0;
    const double sum = 1 / (rstd * rstd), near = nb_rn(sum, d->stat);
    return fabs(sum - near) < 1e-13 * near ? near : sum; /* the root and its square are rounded in f64 */
}

/* ---- stored ------------------------------------------------------------------------------------------------------------ */

static int eps_stored(const struct nb_limits *l, struct nb_limit *line) {
    const double eps = l->design.eps, held = stored_eps(l);
    line->law = eps;
    line->from = held;
    if (held == 0)
        nb_limit_says(line, "%s",
                      eps > 0 ? "eps is lost: a row of zeros becomes NaN." : "Without eps a row of zeros becomes NaN.");
    else
        nb_limit_says(line, "%s stores eps %+.3g %% off, as a %s number%s.", stat(l)->name, 100 * (held / eps - 1),
                      held < stat(l)->min_normal ? "subnormal" : "normal",
                      held < stat(l)->min_normal ? ": with subnormals flushed it is 0" : "");
    return 0;
}
static bool eps_is_held(const struct nb_limits *l, struct nb_limit *line) {
    struct nb_design d = nb_limits_isolated(l);
    const double seen = sum_with_eps(&d, 0);
    snprintf(line->at, sizeof line->at, "row of zeros: 0 + eps = %.9g", seen);
    d.flush = true;
    snprintf(line->beyond, sizeof line->beyond, "with subnormals flushed: %.9g", sum_with_eps(&d, 0));
    return seen == line->from;
}

static int eps_survives(const struct nb_limits *l, struct nb_limit *line) {
    const struct nb_format *f = stat(l);
    if (l->design.stat == NB_NUM_F64) return nb_limit_says(line, "f64 stores any eps.");
    const double tie = f->min_subnormal / 2;
    line->law = l->design.flush ? f->min_normal - tie : tie;
    line->from =
        l->design.flush ? line->law : nextafter(tie, 1); /* a tie goes to 0, and up to the least normal number */
    line->safe = nextafter(line->from, 0);
    nb_limit_says(line, "An eps of %.4g or less is 0 in %s; eps %.4g %s.", line->safe, f->name, l->design.eps,
                  l->design.eps >= line->from ? "survives" : "does not survive");
    return 0;
}
static bool eps_is_left(const struct nb_limits *l, double v, char *seen, size_t size) {
    struct nb_design d = nb_limits_isolated(l);
    d.eps = v;
    const double sum = sum_with_eps(&d, 0);
    snprintf(seen, size, "eps %.17g is stored as %.6g", v, sum);
    return sum > 0;
}

/* ---- absorbed ---------------------------------------------------------------------------------------------------------- */

/* v + eps rounds to v for all v of a binade when eps is less than half of its spacing, u 2^k. */
static int eps_absorbed(const struct nb_limits *l, struct nb_limit *line) {
    const struct nb_format *f = stat(l);
    const double eps = stored_eps(l);
    if (l->design.stat == NB_NUM_F64) return nb_limit_says(line, "In f64 this is beyond any row.");
    if (l->design.eps_place != NB_EPS_INSIDE) return nb_limit_says(line, "eps is not added to the variance.");
    if (eps == 0) return nb_limit_says(line, "eps is 0 there.");
    line->law = eps / f->unit_roundoff;
    int exponent = ilogb(line->law) + 1;
    if (exponent < f->emin) exponent = f->emin;
    line->from = ldexp(1, exponent);
    line->safe = nb_next_below(line->from, l->design.stat);
    if (line->from > f->max_finite) {
        line->from = NAN;
        line->safe = f->max_finite;
        return nb_limit_says(line, "No %s variance is so large.", f->name), 0;
    }
    nb_limit_says(line,
                  "Harmless in itself (eps then weighs less than u / 2): rows of rms above %.3g do not depend "
                  "on eps at all.",
                  sqrt(line->from));
    return 0;
}
static bool eps_changes_nothing(const struct nb_limits *l, double v, char *seen, size_t size) {
    const struct nb_design d = nb_limits_isolated(l);
    const double sum = sum_with_eps(&d, sqrt(v));
    snprintf(seen, size, "%.9g + eps = %.9g", v, sum);
    return sum == v;
}

/* ---- 1 / sqrt ------------------------------------------------------------------------------------------------------------ */

/* 1 / sqrt(q) as the formats make it. */
static double rstd_of(double q, const struct nb_design *d) {
    if (d->flush && q < nb_numbers[d->stat].min_normal) return INFINITY;
    const double root = nb_rn_sqrt(q, d->root);
    if (!(root > 0)) return INFINITY;
    const double r = nb_rn_div(1, root, d->root);
    return isfinite(r) ? nb_rn(r, d->rstd) : r;
}

/* rstd^3, which the backward pass needs, as two products in the root's format. */
static double cubed(double r, const struct nb_design *d) { return nb_rn_mul(nb_rn_mul(r, r, d->root), r, d->root); }

static bool rstd_is_finite(double q, const void *arg) {
    return isfinite(rstd_of(q, &((const struct nb_limits *)arg)->design));
}
static bool cube_is_finite(double q, const void *arg) {
    const struct nb_design *d = &((const struct nb_limits *)arg)->design;
    const double r = rstd_of(q, d);
    return isfinite(r) && isfinite(cubed(r, d));
}

static double tighter_overflow(const struct nb_design *d) {
    return fmin(nb_numbers[d->root].overflow, nb_numbers[d->rstd].overflow);
}

static int root_says_why_not(const struct nb_limits *l, struct nb_limit *line) {
    if (l->design.stat == NB_NUM_F64) return nb_limit_says(line, "In f64 this is beyond any row.");
    if (l->design.root_form == NB_ROOT_DIV_SQRT) return nb_limit_says(line, "Elements are divided by the root.");
    if (l->design.root_form != NB_ROOT_MUL_RECIP)
        return nb_limit_says(line, "An estimate of 1 / sqrt is not predicted here.");
    return 0;
}

static int root_overflow(const struct nb_limits *l, struct nb_limit *line) {
    if (root_says_why_not(l, line) != 0) return -1;
    const double most = tighter_overflow(&l->design);
    line->law = 1 / most / most;
    nb_limit_downwards(line, l->design.stat, rstd_is_finite, l);
    if (isnan(line->from))
        nb_limit_says(line, "The smallest variance in %s has a finite 1 / sqrt in %s.", stat(l)->name,
                      nb_numbers[l->design.rstd].name);
    else
        nb_limit_says(line, "1 / sqrt is infinite, and the row with it; eps %.3g %s.", l->design.eps,
                      stored_eps(l) > line->from ? "is above and prevents it" : "does not prevent it");
    return 0;
}
static double rstd_of_zero_row(const struct nb_limits *l, double q) {
    struct nb_design d = l->design;
    const double x = 0;
    double y;
    d.op = NB_OP_RMSNORM;
    d.eps_place = NB_EPS_INSIDE;
    d.eps = q;
    return nb_emulate_row(&d, 1, &x, NULL, NULL, &y, 1).rstd;
}
static bool rstd_is_infinite(const struct nb_limits *l, double v, char *seen, size_t size) {
    const double r = rstd_of_zero_row(l, v);
    snprintf(seen, size, "1 / sqrt(%.9g) = %.6g", v, r);
    return !isfinite(r);
}

static int cube_overflow(const struct nb_limits *l, struct nb_limit *line) {
    if (root_says_why_not(l, line) != 0) return -1;
    line->law = pow(nb_numbers[l->design.root].overflow, -2.0 / 3);
    nb_limit_downwards(line, l->design.stat, cube_is_finite, l);
    if (isnan(line->from))
        nb_limit_says(line, "No variance in %s is so small.", stat(l)->name);
    else
        nb_limit_says(line, "A backward pass in %s that forms rstd^3 overflows for rstd above %.4g.",
                      nb_numbers[l->design.root].name, cbrt(nb_numbers[l->design.root].overflow));
    return 0;
}
static bool cube_is_infinite(const struct nb_limits *l, double v, char *seen, size_t size) {
    const double r = rstd_of_zero_row(l, v), cube = isfinite(r) ? cubed(r, &l->design) : (double)INFINITY;
    snprintf(seen, size, "v + eps %.9g: rstd %.6g, cubed %.6g", v, r, cube);
    return !isfinite(cube);
}

const struct nb_limit_rule nb_eps_rules[] = {
    {"eps_stored", "eps", "eps is stored as", "eps", eps_stored, NULL, eps_is_held},
    {"eps_survives", "eps", "the smallest eps that is not 0", "eps", eps_survives, eps_is_left, NULL},
    {"eps_absorbed", "eps", "v + eps = v from", "variance", eps_absorbed, eps_changes_nothing, NULL},
    {"root_overflow", "eps", "1 / sqrt(v + eps) overflows up to", "v + eps", root_overflow, rstd_is_infinite, NULL},
    {"root_cubed", "eps", "rstd^3 (backward) overflows up to", "v + eps", cube_overflow, cube_is_infinite, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};
