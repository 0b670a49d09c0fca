// SPDX-License-Identifier: Apache-2.0
/* Sweeps of a kernel over rho, scale, eps and n, and its map over scale and rho; both with the lines at which theory says that the
 * formula breaks down. */
#include "src/lab/stress/sweeps.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "src/accuracy/bound.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/json_members.h"
#include "src/lab/stress/scan.h"

/* ---- What theory says of a scan before it is made: laws of growth of rounding errors, in u rms(y) of the output as in scan.h. Standard deviations are shown twofold, about what the largest of a few rows comes to ---- */

struct theory {
    const struct nb_case *c;
    struct nb_arithmetic arithmetic; /* of the statistics */
    double n;                        /* elements that a statistic is taken over */
    double z_max;
    double eps;       /* as the statistics hold it */
    double u;         /* of x and y */
    bool centres;     /* is the mean subtracted? */
    bool squares_raw; /* are x themselves squared, not their distances from the mean? */
};

static const double STAGNATION = 0.0404, NORMAL_DENSITY = 0.798; /* of |z| at 0 */
static const double SD_SHOWN = 2;

static void theory_init(struct theory *t, const struct nb_scan *s) {
    const struct nb_case *c = &s->trial.c;
    const enum nb_dtype dtype = (enum nb_dtype)c->dtype;
    const enum nb_dtype stats = c->stats_dtype == NB_STATS_X ? dtype : NB_F32;
    *t = (struct theory){.c = c, .n = (double)nb_truth_elements(c), .z_max = s->z_max};
    nb_arithmetic_init(&t->arithmetic, c, s->chain);
    t->eps = nb_round_to(c->eps, stats);
    t->u = nb_formats[dtype].unit_roundoff;
    t->centres = nb_op_centres(s->trial.c.op);
    t->squares_raw = !t->centres || c->variance == NB_VAR_ONEPASS;
}

/* Relative standard deviation of a sum of n positive terms, and of a few operations with it: chain^2 / (18 n) u_sum^2 + u_op^2 / 2 is
 * its square, since L = n / chain lanes err independently, each by a random walk of uniform roundings. */
static double sum_sd(const struct theory *t) {
    const double walk = t->arithmetic.chain * t->arithmetic.sum.u, few = t->arithmetic.op.u;
    return sqrt(walk * walk / (18 * t->n) + few * few / 2);
}

/* Mean relative error of a sum of squares of normal numbers by stagnation, in parts of itself: -0.0404 p0 (chain u)^1.5; NaN beyond
 * chain u = 1, where the law ends. */
static double law_sum_bias(double chain, double u) {
    return chain * u <= 1 ? -STAGNATION * NORMAL_DENSITY * pow(chain * u, 1.5) : NAN;
}

static void add_point(cJSON *points, double x, double y) {
    if (!isfinite(x) || !isfinite(y)) return;
    const double pair[2] = {x, y};
    cJSON_AddItemToArray(points, cJSON_CreateDoubleArray(pair, 2));
}

static cJSON *add_law(cJSON *laws, const char *name) {
    cJSON *law = cJSON_CreateObject(), *points = cJSON_CreateArray();
    cJSON_AddStringToObject(law, "name", name);
    cJSON_AddItemToObject(law, "points", points);
    cJSON_AddItemToArray(laws, law);
    return points;
}

/* ---- over rho ---- */

/* Last roundings of the largest element, and those that a row shares. */
static double base(const struct theory *t) {
    return t->z_max * (t->u + t->arithmetic.op.u + SD_SHOWN / 2 * sum_sd(t)) / t->u;
}

/* An error of the mean, in parts of it, moves every element by rho times as much. */
static double by_mean(const struct theory *t, double rho) { return base(t) + SD_SHOWN * sum_sd(t) * rho / t->u; }

/* Shifted data have a mean near 0, but x - mean is still taken with a mean rounded to rho u. */
static double by_rounded_mean(const struct theory *t, double rho) {
    return base(t) + t->arithmetic.op.u * rho / 2 / t->u;
}

/* E[x^2] is off by sd (1 + rho^2), mean^2 by 2 sd rho^2; half of that is the element's. */
static double by_cancellation(const struct theory *t, double rho) {
    const double sd = sum_sd(t) * sqrt(5) * rho * rho;
    return by_mean(t, rho) + SD_SHOWN * t->z_max / 2 * sd / t->u;
}

static double flat(const struct theory *t, double rho) {
    (void)rho;
    return base(t);
}

/* "predicted" of a sweep, [{"name":.., "points":[[x, y] ..]} ..]: y at the given x. */
static cJSON *laws_over_rho(const struct theory *t, const double *rho, int n) {
    static const struct {
        const char *name;
        double (*law)(const struct theory *t, double rho);
    } laws[NB_N_VARIANCES] = {
        [NB_VAR_NONE] = {"slope 0: nothing cancels", flat},
        [NB_VAR_TWOPASS] = {"slope 1: error of the mean", by_mean},
        [NB_VAR_CORRECTED] = {"slope 0: mean corrected", flat},
        [NB_VAR_WELFORD] = {"slope 1: error of the mean", by_mean},
        [NB_VAR_ONEPASS] = {"slope 2: E[x^2] - mean^2 cancels", by_cancellation},
        [NB_VAR_SHIFTED] = {"slope 1: rounding of the mean", by_rounded_mean},
    };
    cJSON *all = cJSON_CreateArray();
    const uint32_t variance = t->centres ? t->c->variance : NB_VAR_NONE;
    if (t->c->op == NB_OP_DYT || variance >= NB_N_VARIANCES || (t->centres && variance == NB_VAR_NONE)) return all;
    cJSON *points = add_law(all, laws[variance].name);
    for (int i = 0; i < n; i++) add_point(points, rho[i], laws[variance].law(t, rho[i]));
    return all;
}

/* ---- over n ---- */

/* Of the error that a row shares. */
enum law_over_n { WORST_CASE, SQRT_N, SD, BIAS, N_LAWS_OVER_N };
static const char *const law_over_n_names[N_LAWS_OVER_N] = {
    [WORST_CASE] = "gamma_n",
    [SQRT_N] = "sqrt(n) u",
    [SD] = "rms law",
    [BIAS] = "bias law",
};

/* Of y, which takes half of what the sum of squares is off. */
static double law_over_n(const struct theory *t, enum law_over_n law) {
    const double chain = t->arithmetic.chain, u = t->arithmetic.sum.u;
    switch (law) {
    case WORST_CASE:
        return 0.5 * t->arithmetic.growth / t->u;
    case SQRT_N:
        return 0.5 * sqrt(t->n) * u / t->u;
    case SD:
        return 0.5 * sum_sd(t) / t->u;
    default:
        return -0.5 * law_sum_bias(chain, u) / t->u;
    }
}

/* ---- over eps ---- */

static cJSON *laws_over_eps(const struct theory *t, double scale, double rho, const double *eps, int n) {
    cJSON *all = cJSON_CreateArray();
    const enum nb_dtype stats = t->c->stats_dtype == NB_STATS_X ? (enum nb_dtype)t->c->dtype : NB_F32;
    const double square = scale * scale * (t->centres ? 1 : 1 + rho * rho);
    const double v = t->c->op == NB_OP_L2NORM ? square * t->n : square;
    if (t->c->op == NB_OP_DYT || t->c->formula.eps_place != NB_EPS_INSIDE) return all;
    cJSON *points = add_law(all, "eps as stored");
    for (int i = 0; i < n; i++) {
        const double stored = nb_round_to(eps[i], stats);
        const double error = fabs(sqrt((v + eps[i]) / (v + stored)) - 1) / t->u;
        add_point(points, eps[i], t->z_max * error);
    }
    return all;
}

/* ---- Where a formula breaks down, as lines over scale and rho. Each solves one condition for the scale at a given rho, or for rho alone;
 * all are first-order, so that a map shows whether they hold. */

static double overflow_root(const struct theory *t) { return sqrt(t->arithmetic.op.overflow); }
/* In parts of the scale: largest |x|, root mean square of x. */
static double reach(const struct theory *t, double rho) { return rho + t->z_max; }
static double spread(const struct theory *t, double rho) { return t->centres ? 1 : sqrt(1 + rho * rho); }

static double input_overflow(const struct theory *t, double rho) {
    return nb_formats[t->c->dtype].overflow / reach(t, rho);
}
static double square_overflow(const struct theory *t, double rho) {
    return overflow_root(t) / (t->squares_raw ? reach(t, rho) : t->z_max);
}
static double sum_of_squares_overflow(const struct theory *t, double rho) {
    const double rms = t->squares_raw ? sqrt(1 + rho * rho) : 1;
    return sqrt(t->arithmetic.sum.overflow / t->n) / rms;
}
static double sum_overflow(const struct theory *t, double rho) { return t->arithmetic.sum.overflow / t->n / rho; }
static double square_underflow(const struct theory *t, double rho) {
    return sqrt(t->arithmetic.op.eta) / spread(t, rho);
}
static double eps_line(const struct theory *t, double rho) {
    const double v = t->c->op == NB_OP_L2NORM ? t->eps / t->n : t->eps;
    return (t->c->formula.eps_place == NB_EPS_INSIDE ? sqrt(v) : v) / spread(t, rho);
}
static double scale_overflow(const struct theory *t, double rho) {
    const double v = 1 / t->arithmetic.op.overflow / t->arithmetic.op.overflow - t->eps;
    return v > 0 ? sqrt(v) / spread(t, rho) : NAN;
}
static double estimate_underflow(const struct theory *t, double rho) {
    const double v = nb_formats[NB_F32].min_normal - t->eps;
    return v > 0 ? sqrt(v) / spread(t, rho) : NAN;
}

static bool has_statistics(const struct theory *t) { return t->c->op != NB_OP_DYT; }
static bool sums_x(const struct theory *t) {
    const uint32_t v = t->c->variance;
    return t->centres && (v == NB_VAR_TWOPASS || v == NB_VAR_CORRECTED || v == NB_VAR_ONEPASS);
}
static bool sums_squares(const struct theory *t) { return has_statistics(t) && t->c->variance != NB_VAR_WELFORD; }
static bool eps_vanishes(const struct theory *t) { return has_statistics(t) && t->eps < t->arithmetic.op.eta; }
static bool eps_is_there(const struct theory *t) { return has_statistics(t) && t->eps > 0; }
static bool takes_root(const struct theory *t) { return has_statistics(t) && t->c->formula.eps_place == NB_EPS_INSIDE; }
static bool estimates(const struct theory *t) {
    return takes_root(t) && (t->c->formula.root == NB_ROOT_RSQRT_NR || t->c->formula.root == NB_ROOT_RSQRT_RAW);
}
static bool always(const struct theory *t) { return t->n > 0; }

static const struct {
    const char *name, *centred_name; /* the latter where distances from the mean are squared */
    bool (*applies)(const struct theory *t);
    double (*scale)(const struct theory *t, double rho);
} scale_lines[] = {
    {"x beyond the dtype", NULL, always, input_overflow},
    {"x^2 overflows", "(x - mean)^2 overflows", has_statistics, square_overflow},
    {"sum of squares overflows", NULL, sums_squares, sum_of_squares_overflow},
    {"sum of x overflows", NULL, sums_x, sum_overflow},
    {"x^2 rounds to 0", "(x - mean)^2 rounds to 0", eps_vanishes, square_underflow},
    {"m = eps", "v = eps", eps_is_there, eps_line},
    {"1/sqrt overflows", NULL, takes_root, scale_overflow},
    {"estimate of 1/sqrt: argument is subnormal", NULL, estimates, estimate_underflow},
};
enum { N_SCALE_LINES = sizeof scale_lines / sizeof *scale_lines };

static double cancellation(const struct theory *t) { return 1 / sqrt(t->arithmetic.op.u); }
static double spacing(const struct theory *t) { return 0.5 / t->u; }
static double mean_error(const struct theory *t) { return 1 / sum_sd(t); }
static bool cancels(const struct theory *t) { return t->centres && t->c->variance == NB_VAR_ONEPASS; }
static bool centred(const struct theory *t) { return t->centres; }
/* The next line is lower than that of the spacing only where the mean is summed in less than x has. */
static bool mean_is_summed(const struct theory *t) { return sums_x(t) && mean_error(t) < spacing(t); }

static const struct {
    const char *name;
    bool (*applies)(const struct theory *t);
    double (*rho)(const struct theory *t);
} rho_lines[] = {
    {"rho = u^-1/2: E[x^2] - mean^2 has no digit left", cancels, cancellation},
    {"error of the mean = sigma", mean_is_summed, mean_error},
    {"sigma = half the spacing of x", centred, spacing},
};
enum { N_RHO_LINES = sizeof rho_lines / sizeof *rho_lines };

static const char *name_of(const struct theory *t, int i) {
    const bool about_mean = t->centres && (!t->squares_raw || scale_lines[i].scale == eps_line);
    return about_mean && scale_lines[i].centred_name ? scale_lines[i].centred_name : scale_lines[i].name;
}

static void add_line(cJSON *all, const char *name, cJSON *line) {
    if (cJSON_GetArraySize(line) < 2) {
        cJSON_Delete(line);
        return;
    }
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", name);
    cJSON_AddItemToObject(item, "line", line);
    cJSON_AddItemToArray(all, item);
}

/* Lines of breakdown over (log2 scale, log2 rho), each where it lies inside the given ranges:
 * [{"name":"x^2 overflows", "line":[[log2 scale, log2 rho] ..]} ..] */
static cJSON *breakdown_lines(const struct theory *t, const double log2_scale[2], const double log2_rho[2]) {
    enum { STEPS = 32 };
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; i < N_SCALE_LINES; i++) {
        if (!scale_lines[i].applies(t)) continue;
        cJSON *line = cJSON_CreateArray();
        for (int k = 0; k <= STEPS; k++) {
            const double r = log2_rho[0] + (log2_rho[1] - log2_rho[0]) * k / STEPS;
            const double s = log2(scale_lines[i].scale(t, exp2(r)));
            if (s >= log2_scale[0] && s <= log2_scale[1]) add_point(line, s, r);
        }
        add_line(all, name_of(t, i), line);
    }
    for (int i = 0; i < N_RHO_LINES; i++) {
        const double r = rho_lines[i].applies(t) ? log2(rho_lines[i].rho(t)) : NAN;
        cJSON *line = cJSON_CreateArray();
        for (int k = 0; k < 2 && r >= log2_rho[0] && r <= log2_rho[1]; k++) add_point(line, log2_scale[k], r);
        add_line(all, rho_lines[i].name, line);
    }
    return all;
}

static void add_place(cJSON *all, const char *name, double at) {
    if (!(at > 0) || isinf(at)) return;
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", name);
    cJSON_AddNumberToObject(item, "at", at);
    cJSON_AddItemToArray(all, item);
}

/* The same lines where they cross a given rho: [{"name":.., "at": scale} ..]. */
static cJSON *breakdown_scales(const struct theory *t, double rho) {
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; i < N_SCALE_LINES; i++)
        if (scale_lines[i].applies(t)) add_place(all, name_of(t, i), scale_lines[i].scale(t, rho));
    return all;
}

/* Values of eps at which its stored form changes its nature: [{"name":.., "at": eps} ..]. */
static cJSON *breakdown_eps(const struct theory *t) {
    cJSON *all = cJSON_CreateArray();
    const struct nb_format *f = &nb_formats[t->c->stats_dtype == NB_STATS_X ? t->c->dtype : NB_F32];
    if (!has_statistics(t)) return all;
    add_place(all, "eps is subnormal below (0 where flushed)", f->min_normal);
    add_place(all, "eps is 0 below", f->min_subnormal / 2);
    if (takes_root(t)) add_place(all, "1/sqrt(eps) overflows below", 1 / f->overflow / f->overflow);
    return all;
}

/* ---- sweeps ---- */

enum { MOST_POINTS = 32 };

struct request {
    int64_t rows, cols, n_max;
    uint64_t seed;
};

struct held { /* NaN: what the axis moves */
    double n, rows, scale, rho, eps;
};

static int64_t integer_or(const cJSON *options, const char *name, int64_t fallback, int64_t least, int64_t most) {
    const double value = nb_json_get_number(options, name);
    return isfinite(value) ? (int64_t)fmin(fmax(value, (double)least), (double)most) : fallback;
}

static struct request request_of(const cJSON *options) {
    return (struct request){
        .rows = integer_or(options, "rows", 8, 1, 1024),
        .cols = integer_or(options, "cols", 1024, 1, 1 << 20),
        .n_max = integer_or(options, "n_max", 16384, 1, 1 << 24),
        .seed = (uint64_t)integer_or(options, "seed", 1, 0, 1ll << 53),
    };
}

/* Does the request name the axis, or none at all? */
static bool is_wanted(const cJSON *options, const char *axis) {
    const cJSON *axes = cJSON_GetObjectItemCaseSensitive(options, "axes"), *item;
    if (!cJSON_IsArray(axes)) return true;
    cJSON_ArrayForEach(item, axes) {
        if (cJSON_IsString(item) && strcmp(item->valuestring, axis) == 0) return true;
    }
    return false;
}

static cJSON *held_to_json(const struct held *h) {
    static const struct nb_member members[] = {
        NB_MEMBER_OPTIONAL(NUMBER, struct held, n),     NB_MEMBER_OPTIONAL(NUMBER, struct held, rows),
        NB_MEMBER_OPTIONAL(NUMBER, struct held, scale), NB_MEMBER_OPTIONAL(NUMBER, struct held, rho),
        NB_MEMBER_OPTIONAL(NUMBER, struct held, eps),   NB_MEMBERS_END,
    };
    return nb_json_of_members(members, h);
}

static void add_measured(cJSON *points, struct nb_scan *s, double at, double scale, double rho) {
    static const struct nb_member members[] = {
        NB_MEMBER_NAMED(struct nb_scan_point, state, nb_point_state_names),
        NB_MEMBER(NUMBER, struct nb_scan_point, max_ulp),
        NB_MEMBER(NUMBER, struct nb_scan_point, scaled_u),
        NB_MEMBER(NUMBER, struct nb_scan_point, bias_u),
        NB_MEMBER(NUMBER, struct nb_scan_point, gain_u),
        NB_MEMBER(NUMBER, struct nb_scan_point, gain_rms_u),
        NB_MEMBER(NUMBER, struct nb_scan_point, noise_u),
        NB_MEMBER(NUMBER, struct nb_scan_point, bound_u),
        NB_MEMBER(NUMBER, struct nb_scan_point, eps_effect_u),
        NB_MEMBER(COUNT, struct nb_scan_point, nan),
        NB_MEMBER(COUNT, struct nb_scan_point, inf),
        NB_MEMBER(COUNT, struct nb_scan_point, zero),
        NB_MEMBERS_END,
    };
    struct nb_scan_point p;
    cJSON *json = cJSON_CreateObject();
    nb_scan_measure(s, scale, rho, false, &p);
    nb_json_number(json, "at", at);
    nb_json_add_members(json, members, &p);
    cJSON_AddItemToArray(points, json);
}

/* predicted and cliffs are handed over. */
static void add_sweep(cJSON *sweeps, const char *axis, const struct held *held, cJSON *points, cJSON *predicted,
                      cJSON *cliffs) {
    cJSON *sweep = cJSON_CreateObject();
    nb_json_text(sweep, "axis", axis);
    cJSON_AddItemToObject(sweep, "held", held_to_json(held));
    cJSON_AddItemToObject(sweep, "points", points);
    cJSON_AddItemToObject(sweep, "predicted", predicted);
    cJSON_AddItemToObject(sweep, "cliffs", cliffs);
    cJSON_AddItemToArray(sweeps, sweep);
}

static struct held held_by(const struct nb_scan *s) {
    return (struct held){(double)s->cols, (double)s->rows, 1, 0, s->trial.c.eps};
}

/* Powers of two from first to last, at most MOST_POINTS of them, both ends included. Returns how many. */
static int powers(double *at, int first, int last) {
    const int step = (last - first + MOST_POINTS - 2) / (MOST_POINTS - 1);
    int n = 0;
    for (int e = first; e <= last; e += step > 1 ? step : 1) at[n++] = exp2(e);
    return n;
}

/* From no offset to where the spread is a fraction of the spacing of x. */
static void over_rho(cJSON *sweeps, struct nb_scan *s) {
    const int precision = nb_formats[s->trial.in.dtype].precision;
    struct theory theory;
    double at[MOST_POINTS];
    const int n = powers(at, -4, precision - 2);
    struct held held = held_by(s);
    cJSON *points = cJSON_CreateArray();
    for (int i = 0; i < n; i++) add_measured(points, s, at[i], held.scale, at[i]);
    theory_init(&theory, s);
    held.rho = NAN;
    add_sweep(sweeps, "rho", &held, points, laws_over_rho(&theory, at, n), cJSON_CreateArray());
}

/* All that the dtype can hold. */
static void over_scale(cJSON *sweeps, struct nb_scan *s) {
    const struct nb_format *f = &nb_formats[s->trial.in.dtype];
    struct theory theory;
    double at[MOST_POINTS];
    const int n = powers(at, f->emin - f->precision + 1, f->emax);
    struct held held = held_by(s);
    cJSON *points = cJSON_CreateArray();
    for (int i = 0; i < n; i++) add_measured(points, s, at[i], at[i], held.rho);
    theory_init(&theory, s);
    held.scale = NAN;
    add_sweep(sweeps, "scale", &held, points, cJSON_CreateArray(), breakdown_scales(&theory, held.rho));
}

/* The values in use, and those between them, where the steps of an eps stored in f16 show. */
static void over_eps(cJSON *sweeps, struct nb_scan *s, double scale) {
    enum { PER_DECADE = 2, FIRST = -12, LAST = -1 };
    struct theory theory;
    double at[(LAST - FIRST) * PER_DECADE + 1];
    const int n = (LAST - FIRST) * PER_DECADE + 1;
    struct held held = held_by(s);
    const double before = s->trial.c.eps;
    cJSON *points = cJSON_CreateArray();
    held.scale = scale;
    held.eps = NAN;
    for (int i = 0; i < n; i++) {
        at[i] = pow(10, FIRST + (double)i / PER_DECADE);
        nb_trial_set_eps(&s->trial, at[i]);
        add_measured(points, s, at[i], scale, held.rho);
    }
    nb_trial_set_eps(&s->trial, before);
    theory_init(&theory, s);
    add_sweep(sweeps, "eps", &held, points, laws_over_eps(&theory, scale, held.rho, at, n), breakdown_eps(&theory));
}

/* A scan of its own for each row length; about as many elements in each, at least two rows. */
static void over_n(cJSON *sweeps, const struct nb_trial *t, const struct request *q) {
    cJSON *points = cJSON_CreateArray(), *predicted = cJSON_CreateArray(), *laws[N_LAWS_OVER_N];
    struct held held = {NAN, NAN, 1, 0, t->c.eps};
    for (int law = 0; law < N_LAWS_OVER_N; law++) laws[law] = add_law(predicted, law_over_n_names[law]);
    for (int64_t n = 16; n <= q->n_max; n *= 4) {
        const int64_t even = q->rows * q->cols / n, rows = even < 2 ? 2 : even > 64 ? 64 : even;
        struct theory theory;
        struct nb_scan s;
        if (nb_scan_init(&s, t, rows, n, q->seed) == 0) {
            add_measured(points, &s, (double)n, held.scale, held.rho);
            theory_init(&theory, &s);
            for (int law = 0; law < N_LAWS_OVER_N && t->c.op != NB_OP_DYT; law++)
                add_point(laws[law], (double)n, law_over_n(&theory, (enum law_over_n)law));
        }
        nb_scan_release(&s);
    }
    add_sweep(sweeps, "n", &held, points, predicted, cJSON_CreateArray());
}

cJSON *nb_sweeps(struct nb_trial *t, const cJSON *options) {
    /* Mean squares of 1.5e-5, near the usual eps, and of 3.7e-9, which is 0 in f16. */
    static const double near_eps = 0x1p-8, eps_alone = 0x1p-14;
    const struct request q = request_of(options);
    cJSON *sweeps = cJSON_CreateArray();
    struct nb_scan s;
    if (nb_scan_init(&s, t, q.rows, q.cols, q.seed) == 0) {
        if (is_wanted(options, "rho")) over_rho(sweeps, &s);
        if (is_wanted(options, "scale")) over_scale(sweeps, &s);
        if (is_wanted(options, "eps")) over_eps(sweeps, &s, near_eps);
        if (is_wanted(options, "eps")) over_eps(sweeps, &s, eps_alone);
        if (is_wanted(options, "n")) over_n(sweeps, t, &q);
    }
    nb_scan_release(&s);
    return sweeps;
}

/* ---- the map ---- */

struct axis {
    double ends[2];
    int n;
};

static double at(const struct axis *a, int i) { return a->ends[0] + (a->ends[1] - a->ends[0]) * i / (a->n - 1); }

static cJSON *axis_to_json(const struct axis *a) {
    cJSON *json = cJSON_CreateArray();
    for (int i = 0; i < a->n; i++) cJSON_AddItemToArray(json, cJSON_CreateNumber(at(a, i)));
    return json;
}

/* In ulp at rms(y), half as many as u rms(y); three decimals, since a map has thousands of them. */
static cJSON *error_to_json(const struct nb_scan_point *p) {
    const double ulp = p->scaled_u / 2;
    return isfinite(ulp) ? cJSON_CreateNumber(round(1000 * log10(fmax(ulp, 0x1p-10))) / 1000) : cJSON_CreateNull();
}

static void measure(struct nb_scan *s, const struct axis *scale, const struct axis *rho, cJSON *json) {
    cJSON *errors = cJSON_AddArrayToObject(json, "log10_ulp"), *states = cJSON_AddArrayToObject(json, "state");
    for (int r = 0; r < rho->n; r++) {
        cJSON *error_row = cJSON_CreateArray(), *state_row = cJSON_CreateArray();
        for (int k = 0; k < scale->n; k++) {
            struct nb_scan_point p;
            nb_scan_measure(s, exp2(at(scale, k)), exp2(at(rho, r)), true, &p);
            cJSON_AddItemToArray(error_row, error_to_json(&p));
            cJSON_AddItemToArray(state_row, cJSON_CreateString(nb_point_state_names[p.state]));
        }
        cJSON_AddItemToArray(errors, error_row);
        cJSON_AddItemToArray(states, state_row);
    }
}

cJSON *nb_landscape(struct nb_trial *t, const cJSON *options) {
    const struct nb_format *f = &nb_formats[t->c.dtype];
    const struct axis scale = {{f->emin - f->precision + 1, f->emax}, (int)integer_or(options, "scales", 48, 2, 200)};
    const struct axis rho = {{-4, f->precision + 2}, (int)integer_or(options, "rhos", 32, 2, 200)};
    struct nb_scan s;
    struct theory theory;
    cJSON *json = cJSON_CreateObject();
    if (nb_scan_init(&s, t, integer_or(options, "map_rows", 2, 1, 64), integer_or(options, "cols", 1024, 1, 1 << 20),
                     (uint64_t)integer_or(options, "seed", 1, 0, 1ll << 53)) != 0) {
        nb_json_text(json, "reason", s.trial.reason);
        nb_scan_release(&s);
        return json;
    }
    nb_json_number(json, "n", (double)s.cols);
    nb_json_number(json, "rows", (double)s.rows);
    nb_json_number(json, "eps", s.trial.c.eps);
    cJSON_AddItemToObject(json, "log2_scale", axis_to_json(&scale));
    cJSON_AddItemToObject(json, "log2_rho", axis_to_json(&rho));
    measure(&s, &scale, &rho, json);
    theory_init(&theory, &s);
    cJSON_AddItemToObject(json, "predicted", breakdown_lines(&theory, scale.ends, rho.ends));
    nb_scan_release(&s);
    return json;
}
