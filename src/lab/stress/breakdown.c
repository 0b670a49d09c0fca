// SPDX-License-Identifier: Apache-2.0
/* Where a formula breaks down, as lines over scale and rho. Each solves one condition for the scale at a given rho, or for rho alone;
 * all are first-order, so that a map shows whether they hold. */
#include "src/lab/stress/breakdown.h"

#include <math.h>
#include <stdbool.h>

#include "src/core/dtype.h"

typedef struct nb_scan_theory theory;

static double overflow_root(const theory *t) { return sqrt(t->arithmetic.op.overflow); }
/* In parts of the scale: largest |x|, root mean square of x. */
static double reach(const theory *t, double rho) { return rho + t->z_max; }
static double spread(const theory *t, double rho) { return t->centres ? 1 : sqrt(1 + rho * rho); }

static double input_overflow(const theory *t, double rho) { return nb_formats[t->c->dtype].overflow / reach(t, rho); }
static double square_overflow(const theory *t, double rho) {
    return overflow_root(t) / (t->squares_raw ? reach(t, rho) : t->z_max);
}
static double sum_of_squares_overflow(const theory *t, double rho) {
    const double rms = t->squares_raw ? sqrt(1 + rho * rho) : 1;
    return sqrt(t->arithmetic.sum.overflow / t->n) / rms;
}
static double sum_overflow(const theory *t, double rho) { return t->arithmetic.sum.overflow / t->n / rho; }
static double square_underflow(const theory *t, double rho) { return sqrt(t->arithmetic.op.eta) / spread(t, rho); }
static double eps_line(const theory *t, double rho) {
    const double v = t->c->op == NB_OP_L2NORM ? t->eps / t->n : t->eps;
    return (t->c->formula.eps_place == NB_EPS_INSIDE ? sqrt(v) : v) / spread(t, rho);
}
static double scale_overflow(const theory *t, double rho) {
    const double v = 1 / t->arithmetic.op.overflow / t->arithmetic.op.overflow - t->eps;
    return v > 0 ? sqrt(v) / spread(t, rho) : NAN;
}
static double estimate_underflow(const theory *t, double rho) {
    const double v = nb_formats[NB_F32].min_normal - t->eps;
    return v > 0 ? sqrt(v) / spread(t, rho) : NAN;
}

static bool has_statistics(const theory *t) { return t->c->op != NB_OP_DYT; }
static bool sums_x(const theory *t) {
    const uint32_t v = t->c->variance;
    return t->centres && (v == NB_VAR_TWOPASS || v == NB_VAR_CORRECTED || v == NB_VAR_ONEPASS);
}
static bool sums_squares(const theory *t) { return has_statistics(t) && t->c->variance != NB_VAR_WELFORD; }
static bool eps_vanishes(const theory *t) { return has_statistics(t) && t->eps < t->arithmetic.op.eta; }
static bool eps_is_there(const theory *t) { return has_statistics(t) && t->eps > 0; }
static bool takes_root(const theory *t) { return has_statistics(t) && t->c->formula.eps_place == NB_EPS_INSIDE; }
static bool estimates(const theory *t) {
    return takes_root(t) && (t->c->formula.root == NB_ROOT_RSQRT_NR || t->c->formula.root == NB_ROOT_RSQRT_RAW);
}
static bool always(const theory *t) { return t->n > 0; }

static const struct {
    const char *name, *centred_name; /* the latter where distances from the mean are squared */
    bool (*applies)(const theory *t);
    double (*scale)(const theory *t, double rho);
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

static double cancellation(const theory *t) { return 1 / sqrt(t->arithmetic.op.u); }
static double spacing(const theory *t) { return 0.5 / t->u; }
static double mean_error(const theory *t) { return 1 / nb_law_sum_sd(t); }
static bool cancels(const theory *t) { return t->centres && t->c->variance == NB_VAR_ONEPASS; }
static bool centred(const theory *t) { return t->centres; }
/* The next line is lower than that of the spacing only where the mean is summed in less than x has. */
static bool mean_is_summed(const theory *t) { return sums_x(t) && mean_error(t) < spacing(t); }

static const struct {
    const char *name;
    bool (*applies)(const theory *t);
    double (*rho)(const theory *t);
} rho_lines[] = {
    {"rho = u^-1/2: E[x^2] - mean^2 has no digit left", cancels, cancellation},
    {"error of the mean = sigma", mean_is_summed, mean_error},
    {"sigma = half the spacing of x", centred, spacing},
};
enum { N_RHO_LINES = sizeof rho_lines / sizeof *rho_lines };

static const char *name_of(const theory *t, int i) {
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

cJSON *nb_breakdown_lines(const struct nb_scan_theory *t, const double log2_scale[2], const double log2_rho[2]) {
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

cJSON *nb_breakdown_scales(const struct nb_scan_theory *t, double rho) {
    cJSON *all = cJSON_CreateArray();
    for (int i = 0; i < N_SCALE_LINES; i++)
        if (scale_lines[i].applies(t)) add_place(all, name_of(t, i), scale_lines[i].scale(t, rho));
    return all;
}

cJSON *nb_breakdown_eps(const struct nb_scan_theory *t) {
    cJSON *all = cJSON_CreateArray();
    const struct nb_format *f = &nb_formats[t->c->stats_dtype == NB_STATS_X ? t->c->dtype : NB_F32];
    if (!has_statistics(t)) return all;
    add_place(all, "eps is subnormal below (0 where flushed)", f->min_normal);
    add_place(all, "eps is 0 below", f->min_subnormal / 2);
    if (takes_root(t)) add_place(all, "1/sqrt(eps) overflows below", 1 / f->overflow / f->overflow);
    return all;
}
