// SPDX-License-Identifier: Apache-2.0
/* Sweeps of a kernel over rho, scale, eps and n. */
#include "src/lab/stress/sweeps.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/lab/stress/breakdown.h"
#include "src/lab/stress/scan.h"
#include "src/lab/stress/scan_laws.h"

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
    add_sweep(sweeps, "scale", &held, points, cJSON_CreateArray(), nb_breakdown_scales(&theory, held.rho));
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
    add_sweep(sweeps, "eps", &held, points, nb_laws_over_eps(&theory, scale, held.rho, at, n),
              nb_breakdown_eps(&theory));
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
