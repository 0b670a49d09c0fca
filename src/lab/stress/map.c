// SPDX-License-Identifier: Apache-2.0
/* The map of a kernel over scale and rho, with the lines at which theory says that the formula breaks down. */
#include "src/lab/stress/search.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/accuracy/bound.h"
#include "src/core/axes.h"
#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/random.h"

/* ---- One point: rows of one scale and one offset go through a kernel, and how far is the output off? Rows are x = scale * (rho + z), z
 * independent standard normal, the same z at every point, so that points differ by nothing else; gamma is 1 and beta 0. A predicted
 * loss is counted like any other: whether the formula excuses it is for the grades to say, a map shows where it happens. ---- */

struct scan {
    struct nb_trial trial;
    int64_t rows, cols;
    double *z, *x; /* what was drawn, what is sent; owned */
    double z_max;  /* largest |z| */
    int64_t chain; /* as the kernel declares it for this shape */
};

enum point_state {
    POINT_OK,
    POINT_NAN,        /* NaN where a number belongs */
    POINT_INF,        /* Inf where a number belongs */
    POINT_ZERO,       /* most elements are 0 where a number belongs */
    POINT_UNSTORABLE, /* inputs beyond the dtype's range: the kernel was not called */
    POINT_UNDEFINED,  /* the exact result is no number */
    POINT_FAILED,     /* the call failed; trial.reason says why */
};

/* Errors in units of u rms(y), u = 2^-p of the output; where the spacing of subnormal numbers is wider than 2 u rms(y), in half of
 * it. A row whose exact result is 0 throughout counts as one with rms(y) = 1. NaN: not known. */
struct point {
    enum point_state state;
    double scaled_u;        /* largest |error| of the finite elements */
    int64_t nan, inf, zero; /* elements */
};

static const char *const state_names[] = {"ok", "nan", "inf", "zero", "unstorable", "undefined", "failed", NULL};

static int refuse(struct scan *s, const char *reason) {
    snprintf(s->trial.reason_text, sizeof s->trial.reason_text, "%s", reason);
    s->trial.reason = s->trial.reason_text;
    return -1;
}

static void draw(struct scan *s) {
    const struct nb_random stream = nb_random_stream(1, 0);
    const int64_t n = s->rows * s->cols;
    s->z = nb_alloc((unsigned long long)n, sizeof *s->z);
    s->x = nb_alloc((unsigned long long)n, sizeof *s->x);
    for (int64_t i = 0; i < n; i++) {
        s->z[i] = nb_random_normal(stream, (uint64_t)i);
        s->z_max = fmax(s->z_max, fabs(s->z[i]));
    }
}

/* Rows and columns as the op wants them (BatchNorm: channels and positions). -1 with trial.reason when the kernel or the op cannot
 * be scanned so; s is to be released all the same. */
static int scan_init(struct scan *s, const struct nb_trial *like, int64_t rows, int64_t cols) {
    assert(rows >= 1 && cols >= 1);
    struct nb_case c = like->c;
    const bool by_channel = c.op == NB_OP_BATCHNORM;
    char shape[96], reason[200];
    *s = (struct scan){.rows = rows, .cols = cols};
    if (c.pass != NB_FORWARD || c.op == NB_OP_COPY) return refuse(s, "only forward passes are scanned");
    if (by_channel && c.mode == NB_INFERENCE) return refuse(s, "statistics do not come from the rows in inference");
    /* one sample, of which a channel is a row */
    snprintf(shape, sizeof shape, by_channel ? "nchw:1x%lldx%lldx1" : "%lldx%lld", (long long)rows, (long long)cols);
    if (nb_axis_set(nb_axis_find("shape"), &c, shape, reason, sizeof reason) != 0) return refuse(s, reason);
    nb_case_normalize(&c);
    const char *conflict = nb_case_conflict(&c);
    if (conflict) return refuse(s, conflict);
    if (nb_trial_init(&s->trial, &c, like->entry) != 0) return -1;
    nb_trial_set_params(&s->trial, NULL, NULL);
    s->chain = nb_kernel_chain(like->entry->kernel, &s->trial.call);
    draw(s);
    return 0;
}

static void scan_release(struct scan *s) {
    nb_trial_release(&s->trial);
    free(s->z);
    free(s->x);
    *s = (struct scan){0};
}

/* ---- one point ---- */

static bool is_storable(const struct scan *s) {
    const double limit = nb_formats[s->trial.in.dtype].overflow;
    for (int64_t i = 0; i < s->rows * s->cols; i++)
        if (!(fabs(s->x[i]) < limit)) return false;
    return true;
}

static double rms_of(const double *v, int64_t n) {
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += v[i] * v[i];
    return sqrt(squares / (double)n);
}

static double unit_of(double rms, enum nb_dtype dtype) {
    const struct nb_format *f = &nb_formats[dtype];
    return f->unit_roundoff * rms > 0 ? fmax(f->unit_roundoff * rms, f->min_subnormal / 2) : f->unit_roundoff;
}

static void add_row(struct point *p, const struct nb_trial *t, int64_t row, const double *want) {
    const enum nb_dtype dtype = t->in.dtype;
    const double rms = rms_of(want, t->in.cols), unit = unit_of(rms, dtype), limit = nb_formats[dtype].overflow;
    if (!isfinite(rms)) p->state = POINT_UNDEFINED;
    for (int64_t i = 0; i < t->in.cols; i++) {
        const double got = nb_trial_y(t, row, i), error = fabs(got - want[i]) / unit;
        if (isnan(want[i]) || fabs(want[i]) >= limit) continue;
        p->nan += isnan(got);
        p->inf += isinf(got) != 0;
        p->zero += got == 0 && fabs(want[i]) > rms / 16 && nb_round_to(want[i], dtype) != 0;
        if (isfinite(error) && !(error <= p->scaled_u)) p->scaled_u = error;
    }
}

static void compare(struct scan *s, const struct nb_oracle *oracle, struct point *out) {
    double *want freed = nb_alloc((unsigned long long)s->cols, sizeof *want);
    out->state = POINT_OK;
    for (int64_t r = 0; r < s->rows; r++) {
        nb_oracle_row(oracle, r, want);
        add_row(out, &s->trial, r, want);
    }
    if (out->state == POINT_OK)
        out->state = out->nan                            ? POINT_NAN
                     : out->inf                          ? POINT_INF
                     : 2 * out->zero > s->rows * s->cols ? POINT_ZERO
                                                         : POINT_OK;
}

/* Calls the kernel at a point. */
static void scan_measure(struct scan *s, double scale, double rho, struct point *out) {
    struct nb_oracle oracle released_by(nb_oracle_release) = {0};
    *out = (struct point){POINT_FAILED, NAN, 0, 0, 0};
    for (int64_t i = 0; i < s->rows * s->cols; i++) s->x[i] = scale * (rho + s->z[i]);
    if (!is_storable(s)) {
        out->state = POINT_UNSTORABLE;
        return;
    }
    nb_trial_set_x(&s->trial, s->x, NULL);
    if (nb_trial_run(&s->trial) != 0 || nb_oracle_init(&oracle, &s->trial.c, &s->trial.in) != 0) return;
    compare(s, &oracle, out);
}

/* ---- What theory says of a scan before it is made ---- */

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

static struct theory theory_of(const struct scan *s) {
    const struct nb_case *c = &s->trial.c;
    const enum nb_dtype dtype = (enum nb_dtype)c->dtype;
    const enum nb_dtype stats = c->stats_dtype == NB_STATS_X ? dtype : NB_F32;
    struct theory t = {.c = c,
                       .n = (double)nb_truth_elements(c),
                       .z_max = s->z_max,
                       .eps = nb_round_to(c->eps, stats),
                       .u = nb_formats[dtype].unit_roundoff,
                       .centres = nb_op_centres(c->op),
                       .squares_raw = !nb_op_centres(c->op) || c->variance == NB_VAR_ONEPASS};
    nb_arithmetic_init(&t.arithmetic, c, s->chain);
    return t;
}

/* Relative standard deviation of a sum of n positive terms, and of a few operations with it: chain^2 / (18 n) u_sum^2 + u_op^2 / 2 is
 * its square, since L = n / chain lanes err independently, each by a random walk of uniform roundings. */
static double sum_sd(const struct theory *t) {
    const double walk = t->arithmetic.chain * t->arithmetic.sum.u, few = t->arithmetic.op.u;
    return sqrt(walk * walk / (18 * t->n) + few * few / 2);
}

static void add_point(cJSON *points, double x, double y) {
    if (!isfinite(x) || !isfinite(y)) return;
    const double pair[2] = {x, y};
    cJSON_AddItemToArray(points, cJSON_CreateDoubleArray(pair, 2));
}

/* ---- Where a formula breaks down, as lines over scale and rho. Each solves one condition for the scale at a given rho, or for rho alone;
 * all are first-order, so that a map shows whether they hold. */

/* In parts of the scale: largest |x|, root mean square of x. */
static double reach(const struct theory *t, double rho) { return rho + t->z_max; }
static double spread(const struct theory *t, double rho) { return t->centres ? 1 : sqrt(1 + rho * rho); }

static double input_overflow(const struct theory *t, double rho) {
    return nb_formats[t->c->dtype].overflow / reach(t, rho);
}
static double square_overflow(const struct theory *t, double rho) {
    return sqrt(t->arithmetic.op.overflow) / (t->squares_raw ? reach(t, rho) : t->z_max);
}
static double sum_of_squares_overflow(const struct theory *t, double rho) {
    return sqrt(t->arithmetic.sum.overflow / t->n) / (t->squares_raw ? sqrt(1 + rho * rho) : 1);
}
static double sum_overflow(const struct theory *t, double rho) { return t->arithmetic.sum.overflow / t->n / rho; }
static double square_underflow(const struct theory *t, double rho) {
    return sqrt(t->arithmetic.op.eta) / spread(t, rho);
}
static double eps_line(const struct theory *t, double rho) {
    const double v = t->c->op == NB_OP_L2NORM ? t->eps / t->n : t->eps;
    return (t->c->formula.eps_place == NB_EPS_INSIDE ? sqrt(v) : v) / spread(t, rho);
}
/* Where v + eps is so much. */
static double sum_with_eps(const struct theory *t, double rho, double sum) {
    return sum > t->eps ? sqrt(sum - t->eps) / spread(t, rho) : NAN;
}
static double scale_overflow(const struct theory *t, double rho) {
    return sum_with_eps(t, rho, 1 / t->arithmetic.op.overflow / t->arithmetic.op.overflow);
}
static double estimate_underflow(const struct theory *t, double rho) {
    return sum_with_eps(t, rho, nb_formats[NB_F32].min_normal);
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
    cJSON *item = nb_json_add_object(all);
    cJSON_AddStringToObject(item, "name", name);
    cJSON_AddItemToObject(item, "line", line);
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

/* ---- the map ---- */

/* How much is scanned: rows and columns of a call, points of the axes. */
struct extent {
    int64_t rows, cols;
    int scales, rhos;
};
static const struct extent usual = {2, 1024, 48, 32};

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
static cJSON *error_to_json(const struct point *p) {
    const double ulp = p->scaled_u / 2;
    return isfinite(ulp) ? cJSON_CreateNumber(round(1000 * log10(fmax(ulp, 0x1p-10))) / 1000) : cJSON_CreateNull();
}

static void measure(struct scan *s, const struct axis *scale, const struct axis *rho, cJSON *json) {
    cJSON *errors = cJSON_AddArrayToObject(json, "log10_ulp"), *states = cJSON_AddArrayToObject(json, "state");
    for (int r = 0; r < rho->n; r++) {
        cJSON *error_row = cJSON_CreateArray(), *state_row = cJSON_CreateArray();
        for (int k = 0; k < scale->n; k++) {
            struct point p;
            scan_measure(s, exp2(at(scale, k)), exp2(at(rho, r)), &p);
            cJSON_AddItemToArray(error_row, error_to_json(&p));
            cJSON_AddItemToArray(state_row, cJSON_CreateString(state_names[p.state]));
        }
        cJSON_AddItemToArray(errors, error_row);
        cJSON_AddItemToArray(states, state_row);
    }
}

static cJSON *map_of(const struct nb_trial *t, const struct extent *q) {
    const struct nb_format *f = &nb_formats[t->c.dtype];
    const struct axis scale = {{f->emin - f->precision + 1, f->emax}, q->scales};
    const struct axis rho = {{-4, f->precision + 2}, q->rhos};
    struct scan s released_by(scan_release);
    cJSON *json = cJSON_CreateObject();
    if (scan_init(&s, t, q->rows, q->cols) != 0) {
        nb_json_text(json, "reason", s.trial.reason);
        return json;
    }
    nb_json_number(json, "n", (double)s.cols);
    nb_json_number(json, "rows", (double)s.rows);
    nb_json_number(json, "eps", s.trial.c.eps);
    cJSON_AddItemToObject(json, "log2_scale", axis_to_json(&scale));
    cJSON_AddItemToObject(json, "log2_rho", axis_to_json(&rho));
    measure(&s, &scale, &rho, json);
    const struct theory theory = theory_of(&s);
    cJSON_AddItemToObject(json, "predicted", breakdown_lines(&theory, scale.ends, rho.ends));
    return json;
}

cJSON *nb_landscape(struct nb_trial *t, const cJSON *options) { return map_of(t, &usual); }
