// SPDX-License-Identifier: Apache-2.0
/* Laws of growth. Standard deviations are shown twofold, about what the largest of a few rows comes to. */
#include "src/lab/stress/scan_laws.h"

#include <math.h>

#include "src/core/dtype.h"

static const double STAGNATION = 0.0404, NORMAL_DENSITY = 0.798; /* of |z| at 0 */
static const double SD_SHOWN = 2;

void nb_scan_theory_init(struct nb_scan_theory *t, const struct nb_scan *s) {
    const struct nb_case *c = &s->trial.c;
    const enum nb_dtype dtype = (enum nb_dtype)c->dtype;
    const enum nb_dtype stats = c->stats_dtype == NB_STATS_X ? dtype : NB_F32;
    *t = (struct nb_scan_theory){.c = c, .n = (double)nb_truth_elements(c), .z_max = s->z_max};
    nb_arithmetic_init(&t->arithmetic, c, s->chain);
    t->eps = nb_round_to(c->eps, stats);
    t->u = nb_formats[dtype].unit_roundoff;
    t->centres = nb_op_centres(s->trial.c.op);
    t->squares_raw = !t->centres || c->variance == NB_VAR_ONEPASS;
}

double nb_law_sum_sd(const struct nb_scan_theory *t) {
    const double walk = t->arithmetic.chain * t->arithmetic.sum.u, few = t->arithmetic.op.u;
    return sqrt(walk * walk / (18 * t->n) + few * few / 2);
}

double nb_law_sum_bias(double chain, double u) {
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
static double base(const struct nb_scan_theory *t) {
    return t->z_max * (t->u + t->arithmetic.op.u + SD_SHOWN / 2 * nb_law_sum_sd(t)) / t->u;
}

/* An error of the mean, in parts of it, moves every element by rho times as much. */
static double by_mean(const struct nb_scan_theory *t, double rho) {
    return base(t) + SD_SHOWN * nb_law_sum_sd(t) * rho / t->u;
}

/* Shifted data have a mean near 0, but x - mean is still taken with a mean rounded to rho u. */
static double by_rounded_mean(const struct nb_scan_theory *t, double rho) {
    return base(t) + t->arithmetic.op.u * rho / 2 / t->u;
}

/* E[x^2] is off by sd (1 + rho^2), mean^2 by 2 sd rho^2; half of that is the element's. */
static double by_cancellation(const struct nb_scan_theory *t, double rho) {
    const double sd = nb_law_sum_sd(t) * sqrt(5) * rho * rho;
    return by_mean(t, rho) + SD_SHOWN * t->z_max / 2 * sd / t->u;
}

static double flat(const struct nb_scan_theory *t, double rho) {
    (void)rho;
    return base(t);
}

cJSON *nb_laws_over_rho(const struct nb_scan_theory *t, const double *rho, int n) {
    static const struct {
        const char *name;
        double (*law)(const struct nb_scan_theory *t, double rho);
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

const char *const nb_law_over_n_names[NB_N_LAWS_OVER_N] = {
    [NB_LAW_WORST_CASE] = "gamma_n",
    [NB_LAW_SQRT_N] = "sqrt(n) u",
    [NB_LAW_SD] = "rms law",
    [NB_LAW_BIAS] = "bias law",
};

/* Of y, which takes half of what the sum of squares is off. */
double nb_law_over_n(const struct nb_scan_theory *t, enum nb_law_over_n law) {
    const double chain = t->arithmetic.chain, u = t->arithmetic.sum.u;
    switch (law) {
    case NB_LAW_WORST_CASE:
        return 0.5 * t->arithmetic.growth / t->u;
    case NB_LAW_SQRT_N:
        return 0.5 * sqrt(t->n) * u / t->u;
    case NB_LAW_SD:
        return 0.5 * nb_law_sum_sd(t) / t->u;
    default:
        return -0.5 * nb_law_sum_bias(chain, u) / t->u;
    }
}

/* ---- over eps ---- */

cJSON *nb_laws_over_eps(const struct nb_scan_theory *t, double scale, double rho, const double *eps, int n) {
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
