// SPDX-License-Identifier: Apache-2.0
/* Sweeps of a kernel over rho, scale, eps and n, and its map over scale and rho; both with the lines at which theory says that the
 * formula breaks down. */
#include "src/lab/stress/sweeps.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/lab/stress/scan.h"

/* ---- Where a formula breaks down, as lines over scale and rho. Each solves one condition for the scale at a given rho, or for rho alone;
 * all are first-order, so that a map shows whether they hold. */

static double overflow_root(const struct nb_scan_theory *t) { return sqrt(t->arithmetic.op.overflow); }
/* In parts of the scale: largest |x|, root mean square of x. */
static double reach(const struct nb_scan_theory *t, double rho) { return rho + t->z_max; }
static double spread(const struct nb_scan_theory *t, double rho) { return t->centres ? 1 : sqrt(1 + rho * rho); }

static double input_overflow(const struct nb_scan_theory *t, double rho) {
    return nb_formats[t->c->dtype].overflow / reach(t, rho);
}
static double square_overflow(const struct nb_scan_theory *t, double rho) {
    return overflow_root(t) / (t->squares_raw ? reach(t, rho) : t->z_max);
}
static double sum_of_squares_overflow(const struct nb_scan_theory *t, double rho) {
    const double rms = t->squares_raw ? sqrt(1 + rho * rho) : 1;
    return sqrt(t->arithmetic.sum.overflow / t->n) / rms;
}
static double sum_overflow(const struct nb_scan_theory *t, double rho) {
    return t->arithmetic.sum.overflow / t->n / rho;
}
static double square_underflow(const struct nb_scan_theory *t, double rho) {
    return sqrt(t->arithmetic.op.eta) / spread(t, rho);
}
static double eps_line(const struct nb_scan_theory *t, double rho) {
    const double v = t->c->op == NB_OP_L2NORM ? t->eps / t->n : t->eps;
    return (t->c->formula.eps_place == NB_EPS_INSIDE ? sqrt(v) : v) / spread(t, rho);
}
static double scale_overflow(const struct nb_scan_theory *t, double rho) {
    const double v = 1 / t->arithmetic.op.overflow / t->arithmetic.op.overflow - t->eps;
    return v > 0 ? sqrt(v) / spread(t, rho) : NAN;
}
static double estimate_underflow(const struct nb_scan_theory *t, double rho) {
    const double v = nb_formats[NB_F32].min_normal - t->eps;
    return v > 0 ? sqrt(v) / spread(t, rho) : NAN;
}

static bool has_statistics(const struct nb_scan_theory *t) { return t->c->op != NB_OP_DYT; }
static bool sums_x(const struct nb_scan_theory *t) {
    const uint32_t v = t->c->variance;
    return t->centres && (v == NB_VAR_TWOPASS || v == NB_VAR_CORRECTED || v == NB_VAR_ONEPASS);
}
static bool sums_squares(const struct nb_scan_theory *t) {
    return has_statistics(t) && t->c->variance != NB_VAR_WELFORD;
}
static bool eps_vanishes(const struct nb_scan_theory *t) { return has_statistics(t) && t->eps < t->arithmetic.op.eta; }
static bool eps_is_there(const struct nb_scan_theory *t) { return has_statistics(t) && t->eps > 0; }
static bool takes_root(const struct nb_scan_theory *t) {
    return has_statistics(t) && t->c->formula.eps_place == NB_EPS_INSIDE;
}
static bool estimates(const struct nb_scan_theory *t) {
    return takes_root(t) && (t->c->formula.root == NB_ROOT_RSQRT_NR || t->c->formula.root == NB_ROOT_RSQRT_RAW);
}
static bool always(const struct nb_scan_theory *t) { return t->n > 0; }

static const struct {
    const char *name, *centred_name; /* the latter where distances from the mean are squared */
    bool (*applies)(const struct nb_scan_theory *t);
    double (*scale)(const struct nb_scan_theory *t, double rho);
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

static double cancellation(const struct nb_scan_theory *t) { return 1 / sqrt(t->arithmetic.op.u); }
static double spacing(const struct nb_scan_theory *t) { return 0.5 / t->u; }
static double mean_error(const struct nb_scan_theory *t) { return 1 / nb_law_sum_sd(t); }
static bool cancels(const struct nb_scan_theory *t) { return t->centres && t->c->variance == NB_VAR_ONEPASS; }
static bool centred(const struct nb_scan_theory *t) { return t->centres; }
/* The next line is lower than that of the spacing only where the mean is summed in less than x has. */
static bool mean_is_summed(const struct nb_scan_theory *t) { return sums_x(t) && mean_error(t) < spacing(t); }

static const struct {
    const char *name;
    bool (*applies)(const struct nb_scan_theory *t);
    double (*rho)(const struct nb_scan_theory *t);
} rho_lines[] = {
    {"rho = u^-1/2: E[x^2] - mean^2 has no digit left", cancels, cancellation},
    {"error of the mean = sigma", mean_is_summed, mean_error},
    {"sigma = half the spacing of x", centred, spacing},
};
enum { N_RHO_LINES = sizeof rho_lines / sizeof *rho_lines };

static const char *name_of(const struct nb_scan_theory *t, int i) {
    const bool about_mean = t->centres && (!t->squares_raw || scale_lines[i].scale == eps_line);
    return about_mean && scale_lines[i].centred_name ? scale_lines[i].centred_name : scale_lines[i].name;
}

static void add_pair(cJSON *line, double s, double r) {
    const double pair[2] = {s, r};
    cJSON_AddItemToArray(line, cJSON_CreateDoubleArray(pair, 2));
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
static cJSON *breakdown_lines(const struct nb_scan_theory *t, const double log2_scale[2], const double log2_rho[2]) {
    enum { STEPS = 32 };
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; i < N_SCALE_LINES; i++) {
        if (!scale_lines[i].applies(t)) continue;
        cJSON *line = cJSON_CreateArray();
        for (int k = 0; k <= STEPS; k++) {
            const double r = log2_rho[0] + (log2_rho[1] - log2_rho[0]) * k / STEPS;
            const double s = log2(scale_lines[i].scale(t, exp2(r)));
            if (s >= log2_scale[0] && s <= log2_scale[1]) add_pair(line, s, r);
        }
        add_line(all, name_of(t, i), line);
    }
    for (int i = 0; i < N_RHO_LINES; i++) {
        const double r = rho_lines[i].applies(t) ? log2(rho_lines[i].rho(t)) : NAN;
        cJSON *line = cJSON_CreateArray();
        for (int k = 0; k < 2 && r >= log2_rho[0] && r <= log2_rho[1]; k++) add_pair(line, log2_scale[k], r);
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
static cJSON *breakdown_scales(const struct nb_scan_theory *t, double rho) {
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; i < N_SCALE_LINES; i++)
        if (scale_lines[i].applies(t)) add_place(all, name_of(t, i), scale_lines[i].scale(t, rho));
    return all;
}

/* Values of eps at which its stored form changes its nature: [{"name":.., "at": eps} ..]. */
static cJSON *breakdown_eps(const struct nb_scan_theory *t) {
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

static double number_or(const cJSON *options, const char *name, double fallback, double least, double most) {
    const double value = nb_json_get_number(options, name);
    return isfinite(value) ? fmin(fmax(value, least), most) : fallback;
}

static struct request request_of(const cJSON *options) {
    return (struct request){
        .rows = (int64_t)number_or(options, "rows", 8, 1, 1024),
        .cols = (int64_t)number_or(options, "cols", 1024, 1, 1 << 20),
        .n_max = (int64_t)number_or(options, "n_max", 16384, 1, 1 << 24),
        .seed = (uint64_t)number_or(options, "seed", 1, 0, 0x1p53),
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
    const struct {
        const char *name;
        double value;
    } all[] = {{"n", h->n}, {"rows", h->rows}, {"scale", h->scale}, {"rho", h->rho}, {"eps", h->eps}};
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!isnan(all[i].value)) nb_json_number(json, all[i].name, all[i].value);
    return json;
}

static cJSON *point_to_json(double at, const struct nb_scan_point *p) {
    cJSON *json = cJSON_CreateObject();
    nb_json_number(json, "at", at);
    nb_json_text(json, "state", nb_point_state_name(p->state));
    nb_json_number(json, "max_ulp", p->max_ulp);
    nb_json_number(json, "scaled_u", p->scaled_u);
    nb_json_number(json, "bias_u", p->bias_u);
    nb_json_number(json, "gain_u", p->gain_u);
    nb_json_number(json, "gain_rms_u", p->gain_rms_u);
    nb_json_number(json, "noise_u", p->noise_u);
    nb_json_number(json, "bound_u", p->bound_u);
    nb_json_number(json, "eps_effect_u", p->eps_effect_u);
    nb_json_number(json, "nan", (double)p->nan);
    nb_json_number(json, "inf", (double)p->inf);
    nb_json_number(json, "zero", (double)p->zero);
    return json;
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
    struct nb_scan_theory theory;
    struct nb_scan_point p;
    double at[MOST_POINTS];
    const int n = powers(at, -4, precision - 2);
    struct held held = held_by(s);
    cJSON *points = cJSON_CreateArray();
    for (int i = 0; i < n; i++) {
        nb_scan_measure(s, held.scale, at[i], false, &p);
        cJSON_AddItemToArray(points, point_to_json(at[i], &p));
    }
    nb_scan_theory_init(&theory, s);
    held.rho = NAN;
    add_sweep(sweeps, "rho", &held, points, nb_laws_over_rho(&theory, at, n), cJSON_CreateArray());
}

/* All that the dtype can hold. */
static void over_scale(cJSON *sweeps, struct nb_scan *s) {
    const struct nb_format *f = &nb_formats[s->trial.in.dtype];
    struct nb_scan_theory theory;
    struct nb_scan_point p;
    double at[MOST_POINTS];
    const int n = powers(at, f->emin - f->precision + 1, f->emax);
    struct held held = held_by(s);
    cJSON *points = cJSON_CreateArray();
    for (int i = 0; i < n; i++) {
        nb_scan_measure(s, at[i], held.rho, false, &p);
        cJSON_AddItemToArray(points, point_to_json(at[i], &p));
    }
    nb_scan_theory_init(&theory, s);
    held.scale = NAN;
    add_sweep(sweeps, "scale", &held, points, cJSON_CreateArray(), breakdown_scales(&theory, held.rho));
}

/* The values in use, and those between them, where the steps of an eps stored in f16 show. */
static void over_eps(cJSON *sweeps, struct nb_scan *s, double scale) {
    enum { PER_DECADE = 2, FIRST = -12, LAST = -1 };
    struct nb_scan_theory theory;
    struct nb_scan_point p;
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
        nb_scan_measure(s, scale, held.rho, false, &p);
        cJSON_AddItemToArray(points, point_to_json(at[i], &p));
    }
    nb_trial_set_eps(&s->trial, before);
    nb_scan_theory_init(&theory, s);
    add_sweep(sweeps, "eps", &held, points, nb_laws_over_eps(&theory, scale, held.rho, at, n), breakdown_eps(&theory));
}

static void add_law_point(cJSON *points, double x, double y) {
    const double pair[2] = {x, y};
    if (isfinite(y)) cJSON_AddItemToArray(points, cJSON_CreateDoubleArray(pair, 2));
}

/* A scan of its own for each row length; about as many elements in each, at least two rows. */
static void over_n(cJSON *sweeps, const struct nb_trial *t, const struct request *q) {
    cJSON *points = cJSON_CreateArray(), *predicted = cJSON_CreateArray(), *laws[NB_N_LAWS_OVER_N];
    struct held held = {NAN, NAN, 1, 0, t->c.eps};
    for (int law = 0; law < NB_N_LAWS_OVER_N; law++) laws[law] = cJSON_CreateArray();
    for (int64_t n = 16; n <= q->n_max; n *= 4) {
        const int64_t even = q->rows * q->cols / n, rows = even < 2 ? 2 : even > 64 ? 64 : even;
        struct nb_scan_theory theory;
        struct nb_scan_point p;
        struct nb_scan s;
        if (nb_scan_init(&s, t, rows, n, q->seed) == 0) {
            nb_scan_measure(&s, held.scale, held.rho, false, &p);
            cJSON_AddItemToArray(points, point_to_json((double)n, &p));
            nb_scan_theory_init(&theory, &s);
            for (int law = 0; law < NB_N_LAWS_OVER_N && t->c.op != NB_OP_DYT; law++)
                add_law_point(laws[law], (double)n, nb_law_over_n(&theory, (enum nb_law_over_n)law));
        }
        nb_scan_release(&s);
    }
    for (int law = 0; law < NB_N_LAWS_OVER_N; law++) {
        cJSON *one = cJSON_CreateObject();
        nb_json_text(one, "name", nb_law_over_n_names[law]);
        cJSON_AddItemToObject(one, "points", laws[law]);
        cJSON_AddItemToArray(predicted, one);
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

static int64_t integer_or(const cJSON *options, const char *name, int64_t fallback, int64_t least, int64_t most) {
    const double value = nb_json_get_number(options, name);
    return isfinite(value) ? (int64_t)fmin(fmax(value, (double)least), (double)most) : fallback;
}

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
            cJSON_AddItemToArray(state_row, cJSON_CreateString(nb_point_state_name(p.state)));
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
    struct nb_scan_theory theory;
    cJSON *json = cJSON_CreateObject();
    if (nb_scan_init(&s, t, integer_or(options, "map_rows", 2, 1, 64), integer_or(options, "cols", 1024, 1, 1 << 20),
                     (uint64_t)integer_or(options, "seed", 1, 0, INT64_MAX)) != 0) {
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
    nb_scan_theory_init(&theory, &s);
    cJSON_AddItemToObject(json, "predicted", breakdown_lines(&theory, scale.ends, rho.ends));
    nb_scan_release(&s);
    return json;
}
