// SPDX-License-Identifier: Apache-2.0
/* Each rule gives a threshold of its own; the tightest is the prediction. */
#include "src/lab/stress/frontier_theory.h"

#include <math.h>

#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/lab/stress/row_score.h"

const char *const nb_demand_names[NB_N_DEMANDS] = {"accurate", "half_the_bits", "one_digit"};

double nb_demand_relative(enum nb_demand demand, enum nb_dtype dtype) {
    switch (demand) {
    case NB_DEMAND_HALF:
        return sqrt(nb_formats[dtype].unit_roundoff);
    case NB_DEMAND_DIGIT:
        return 0.1;
    default:
        return 0;
    }
}

/* Of an error that all elements of a row share: k ulp are from k u to 2 k u, so about 1.5 k u. */
static double shared_tolerance(enum nb_demand demand, enum nb_dtype dtype) {
    return fmax(nb_demand_relative(demand, dtype), 1.5 * nb_granted_ulp(dtype) * nb_formats[dtype].unit_roundoff);
}

static struct nb_arithmetic arithmetic_of(const struct nb_trial *t) {
    struct nb_arithmetic a;
    nb_arithmetic_init(&a, &t->c, nb_kernel_chain(t->entry->kernel, &t->call));
    return a;
}

/* ---- the largest scale ---- */

static struct nb_prediction largest_scale(const struct nb_arithmetic *a, const struct nb_draw_facts *f) {
    const double square = sqrt(a->op.overflow) / f->max_abs;
    const double sum = sqrt(a->sum.overflow / ((double)f->n * f->mean_square));
    if (sum < square) return (struct nb_prediction){sum, "the sum of squares overflows: rms sqrt(T / n)"};
    return (struct nb_prediction){square, "x^2 overflows: |x| = sqrt(T)"};
}

/* ---- the smallest scale ---- */

/* eps as it is stored is off by d, which moves y by d / (2 (m + eps)). */
static double eps_limit(const struct nb_case *c, const struct nb_draw_facts *f, double stored, double tolerance) {
    const double m = fabs(stored - c->eps) / (2 * tolerance) - c->eps;
    return m > 0 ? sqrt(m / f->least_square) : 0;
}

/* The mean square is rounded to a grid of 2 eta, which moves y by up to eta / (2 (m + eps)). */
static double grid_limit(const struct nb_arithmetic *a, const struct nb_draw_facts *f, double stored,
                         double tolerance) {
    const double m = a->op.eta / (2 * tolerance) - stored;
    return m > 0 ? sqrt(m / f->least_square) : 0;
}

/* 1 / sqrt(m + eps) beyond the range. */
static double root_limit(const struct nb_arithmetic *a, const struct nb_case *c, const struct nb_draw_facts *f,
                         double stored) {
    const double m = 1 / (a->op.overflow * a->op.overflow) - stored;
    return c->formula.root != NB_ROOT_DIV_SQRT && m > 0 ? sqrt(m / f->least_square) : 0;
}

static struct nb_prediction smallest_scale(const struct nb_arithmetic *a, const struct nb_trial *t,
                                           enum nb_demand demand, const struct nb_draw_facts *f) {
    const struct nb_case *c = &t->c;
    const enum nb_dtype stats = c->stats_dtype == NB_STATS_X ? t->in.dtype : NB_F32;
    const double stored = nb_round_to(c->eps, stats), tolerance = shared_tolerance(demand, t->in.dtype);
    struct nb_prediction p = {0, "none: eps covers what underflows"};
    const struct nb_prediction rules[] = {
        {eps_limit(c, f, stored, tolerance), "eps is stored inexactly"},
        {grid_limit(a, f, stored, tolerance), "the mean square falls on the subnormal grid"},
        {root_limit(a, c, f, stored), "1 / sqrt(m + eps) overflows"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].at > p.at) p = rules[i];
    return p;
}

/* ---- the largest rho ---- */

/* Sums of n terms in L = n / chain lanes, whose roundings are independent, are off by sqrt(n / (18 L^2) + 1/2) u of their size
 * (root mean square: errors uniform, partial sums growing evenly, then a tree). The largest of some rows is twice that for the
 * mean; for a variance as the difference of two such figures, 4 times that times 1 + rho^2. */
struct spread_errors {
    double mean, gain; /* of y: absolute where rms(y) = 1; relative */
};

static struct spread_errors errors_at(const struct nb_arithmetic *a, const struct nb_trial *t, double n, double rho) {
    const double u = a->op.u, g = sqrt(a->chain * a->chain / (18 * n) + 0.5);
    struct spread_errors e = {2 * g * u * rho, 2 * g * u};
    switch (t->c.variance) {
    case NB_VAR_WELFORD: /* later steps take most of an early rounding of the running mean away again */
        e.mean *= 0.7;
        break;
    case NB_VAR_ONEPASS:
        e.gain *= 1 + rho * rho;
        break;
    case NB_VAR_CORRECTED:
        e.mean = u + e.mean * e.mean; /* the residual mean is taken away from each element too */
        break;
    case NB_VAR_SHIFTED:
        e.mean = 0.5 * u * rho; /* x_0 plus a small sum, rounded once */
        e.gain *= 2;
        break;
    default:
        e.gain += e.mean * e.mean / 2;
    }
    return e;
}

/* Noise of inputs of size rho is 0.75 u rho, for elements of any size: next to the largest |y| it weighs least. */
static bool is_granted(const struct nb_arithmetic *a, const struct nb_trial *t, enum nb_demand demand, double n,
                       double rho) {
    const struct spread_errors e = errors_at(a, t, n, rho);
    const double noise = NB_GRANTED_NOISE * 0.75 * nb_formats[t->in.dtype].unit_roundoff * rho;
    const double granted = shared_tolerance(demand, t->in.dtype), y_max = sqrt(2 * log(fmax(n, 2)));
    return e.mean <= fmax(granted, noise) && e.gain <= fmax(granted, noise / y_max);
}

static double precision_limit(const struct nb_arithmetic *a, const struct nb_trial *t, enum nb_demand demand,
                              const struct nb_draw_facts *f) {
    const double n = (double)f->n;
    double low = 0x1p-10, high = 0x1p60;
    if (is_granted(a, t, demand, n, high)) return INFINITY;
    while (high / low > 1 + 0x1p-20) {
        const double middle = sqrt(low * high);
        *(is_granted(a, t, demand, n, middle) ? &low : &high) = middle;
    }
    return low;
}

static struct nb_prediction largest_rho(const struct nb_arithmetic *a, const struct nb_trial *t, enum nb_demand demand,
                                        const struct nb_draw_facts *f) {
    const bool squares_x = t->c.variance == NB_VAR_ONEPASS;
    struct nb_prediction p = {precision_limit(a, t, demand, f), "rounding errors grow with rho, or its square"};
    const double sum = a->sum.overflow / (double)f->n;
    if (isinf(p.at)) p.rule = "none: errors grow no faster than input noise";
    if (t->c.variance != NB_VAR_WELFORD && t->c.variance != NB_VAR_SHIFTED && sum < p.at)
        p = (struct nb_prediction){sum, "the sum of x overflows: mean T / n"};
    if (squares_x && sqrt(sum) < p.at)
        p = (struct nb_prediction){sqrt(sum), "the sum of squares overflows: rms sqrt(T / n)"};
    return p;
}

struct nb_prediction nb_frontier_predict(const struct nb_trial *t, enum nb_frontier_of of, enum nb_demand demand,
                                         const struct nb_draw_facts *facts) {
    const struct nb_arithmetic a = arithmetic_of(t);
    if (t->c.op == NB_OP_DYT)
        return (struct nb_prediction){of == NB_SCALE_MIN ? 0 : (double)INFINITY, "none: the op sums nothing"};
    if (of == NB_SCALE_MAX) return largest_scale(&a, facts);
    if (of == NB_SCALE_MIN) return smallest_scale(&a, t, demand, facts);
    if (nb_op_centres(t->c.op)) return largest_rho(&a, t, demand, facts);
    return (struct nb_prediction){INFINITY, "none: the op does not centre"};
}
