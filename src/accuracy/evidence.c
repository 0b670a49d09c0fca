// SPDX-License-Identifier: Apache-2.0
/* One sweep over a row: each element is compared, NaN, Inf and lost zeros are counted apart. */
#include "src/accuracy/evidence.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/stats.h"

struct nb_evidence_sum {
    struct nb_evidence e;
    const struct nb_oracle *oracle;
    const struct nb_format *statistics; /* of the kernel's */
    enum nb_dtype dtype;
    bool cancels;
    bool by_column;                      /* NHWC: each column has a truth of its own */
    double error_squares, exact_squares; /* of the row */
    double shape_squares, error_shape;   /* and of y - beta, alone and times the error */
    const double *beta;                  /* by column; null: none, or BatchNorm, whose stand by channel */
    double rms;                          /* of the row's exact values */
    double largest;                      /* magnitude whose squares the statistics hold */
};

/* Of rows whose sums of squares stay numbers, with a factor of 2 to spare; -1 where eps or 1 / eps does not: what the arithmetic of the
 * statistics cannot hold is no fault of the kernel. */
static double largest_of(const struct nb_oracle *o, const struct nb_format *f) {
    const double eps = o->c->eps;
    const bool loses_eps = eps > 0 && (eps < f->min_normal || 1 / eps > f->overflow);
    return o->c->pass == NB_BACKWARD || loses_eps ? -1 : sqrt(f->overflow / (double)o->n_stats) / 2;
}

static const struct nb_evidence nothing_known = {.is_declared = true,
                                                 .worst_row = -1,
                                                 .worst_col = -1,
                                                 .broken_row = -1,
                                                 .broken_rho = NAN,
                                                 .factor_low = NAN,
                                                 .factor_high = NAN,
                                                 .factor_rest = NAN};

struct nb_evidence_sum *nb_evidence_new(const struct nb_case *c, const struct nb_oracle *oracle,
                                        const struct nb_evidence *of) {
    const uint32_t op = oracle->c->op;
    struct nb_evidence_sum *s = nb_alloc(1, sizeof *s);
    s->oracle = oracle;
    s->dtype = oracle->in->dtype;
    s->cancels = nb_op_centres(op) || oracle->beta || oracle->c->pass == NB_BACKWARD;
    s->by_column = op == NB_OP_BATCHNORM && oracle->c->shape.layout == NB_NHWC;
    s->statistics = &nb_formats[c->stats_dtype == NB_STATS_X ? s->dtype : NB_F32];
    s->largest = largest_of(oracle, s->statistics);
    s->beta = oracle->c->pass == NB_FORWARD && oracle->c->op != NB_OP_BATCHNORM ? oracle->beta : NULL;
    s->e = nothing_known;
    s->e.claimed = of->claimed;
    s->e.is_declared = of->is_declared;
    s->e.min_rms = INFINITY;
    return s;
}

static void keep_larger(double *largest, double v) {
    if (!(v <= *largest)) *largest = v;
}

static double rho_of(const struct nb_row_truth *t) {
    const double deviation = sqrt(t->var);
    return t->mean == 0 ? 0 : deviation > 0 ? fabs(t->mean) / deviation : (double)INFINITY;
}

/* The statistics that an element was normalized with, taken in once for each row or channel that is met. */
static void take_truth(struct nb_evidence *e, const struct nb_row_truth *t) {
    if (sqrt(t->mean_square) < e->min_rms) e->min_rms = sqrt(t->mean_square);
    keep_larger(&e->max_abs, t->max_abs);
    keep_larger(&e->max_rho, rho_of(t));
}

static bool is_finite(const struct nb_row_truth *t) { return isfinite(t->mean_square) && isfinite(t->max_abs); }

static void set_reproducer(struct nb_evidence *e, int64_t row, int64_t col) {
    e->worst_row = row;
    e->worst_col = col;
}

/* A NaN or Inf for which the row gives no reason. */
static void count_broken(struct nb_evidence_sum *s, int64_t row, const struct nb_row_truth *t) {
    struct nb_evidence *e = &s->e;
    const double rho = rho_of(t);
    const bool vanishes = t->var > 0 && t->var < s->statistics->min_normal;
    if (!(t->max_abs <= fmin(s->largest, e->claimed.max_abs)) || sqrt(t->mean_square) < e->claimed.min_rms) return;
    if (vanishes && s->oracle->c->formula.eps_place != NB_EPS_INSIDE) return;
    if (e->is_declared && rho > e->claimed.max_rho) return;
    if (e->n_broken++ > 0 && rho >= e->broken_rho) return;
    e->broken_rho = rho;
    e->broken_row = row;
}

/* NaN, Inf or a right overflow. Returns whether that is all there is to say about the element. */
static bool exceptional(struct nb_evidence_sum *s, int64_t row, int64_t col, const struct nb_row_truth *t, double got,
                        double want) {
    struct nb_evidence *e = &s->e;
    const bool want_inf = fabs(want) >= nb_formats[s->dtype].overflow;
    if (isfinite(got) && !want_inf) return false;
    if (want_inf && isinf(got) && (got > 0) == (want > 0)) {
        e->n_correct++;
        return true;
    }
    if (e->n_nan + e->n_inf == 0) set_reproducer(e, row, col);
    e->n_beyond++;
    if (!want_inf && isnan(got)) e->n_nan++;
    if (!want_inf && isinf(got)) e->n_inf++;
    if (!want_inf) s->error_squares = INFINITY;
    if (!want_inf) count_broken(s, row, t);
    return true;
}

static void compare(struct nb_evidence_sum *s, int64_t row, int64_t col, double got, double want, double tolerance) {
    struct nb_evidence *e = &s->e;
    const double shape = s->beta ? want - s->beta[col] : want;
    const double error = fabs(got - want), ulp = nb_ulp(want, s->dtype), nearest = nb_nearest_multiple(want, ulp);
    const bool cancelled = s->cancels && fabs(want) < s->rms / NB_CANCELLING;
    const double ulps = error / (cancelled ? nb_ulp(s->rms / NB_CANCELLING, s->dtype) : ulp);
    const bool bounded = isfinite(tolerance), beyond = bounded && !(error <= tolerance);
    const bool ordinary = fabs(want) >= nb_formats[s->dtype].min_normal && fabs(want) > s->rms * 0x1p-10;
    s->error_squares += error * error;
    s->exact_squares += want * want;
    s->shape_squares += shape * shape;
    s->error_shape += (got - want) * shape;
    keep_larger(&e->max_ulp, error / ulp);
    if (bounded) keep_larger(&e->bound_ratio, error == 0 ? 0 : error / tolerance);
    if (got == nearest) e->n_correct++;
    if (beyond) e->n_beyond++;
    const bool lost = got == 0 && ordinary && (beyond || !bounded), first = e->n_nan + e->n_inf + e->n_zero == 0;
    if (first && (lost || ulps > e->componentwise_ulp)) set_reproducer(e, row, col);
    if (lost) e->n_zero++;
    keep_larger(&e->componentwise_ulp, ulps);
}

/* Of the row; a row whose exact y is beta alone says nothing. */
static void take_factor(struct nb_evidence_sum *s) {
    struct nb_evidence *e = &s->e;
    const double gain = s->error_shape / s->shape_squares, rest = s->error_squares / s->shape_squares - gain * gain;
    if (s->oracle->c->op == NB_OP_BATCHNORM || !(s->shape_squares > 0)) return;
    e->factor_low = fmin(e->factor_low, 1 + gain);
    e->factor_high = fmax(e->factor_high, 1 + gain);
    e->factor_rest = fmax(e->factor_rest, isfinite(rest) ? sqrt(fmax(rest, 0)) : (double)INFINITY);
}

void nb_evidence_row(struct nb_evidence_sum *s, int64_t row, const void *computed, const double *exact,
                     const double *tolerance) {
    const int64_t cols = s->oracle->in->cols;
    const struct nb_row_truth *met = NULL, *of_row = nb_oracle_truth(s->oracle, row, 0);
    const bool met_all = s->by_column && s->e.n_rows > 0; /* every row has the same */
    bool finite = true;
    s->rms = nb_rms(exact, cols);
    s->error_squares = s->exact_squares = s->shape_squares = s->error_shape = 0;
    for (int64_t i = 0; i < cols; i++) {
        const struct nb_row_truth *t = s->by_column ? &s->oracle->truth[i] : of_row;
        if (!is_finite(t)) finite = false;
        if (!is_finite(t)) continue;
        if (t != met && !met_all) take_truth(&s->e, t);
        met = t;
        if (!isfinite(exact[i])) continue;
        const double got = nb_get(computed, i, s->dtype);
        s->e.n++;
        if (!isfinite(tolerance[i])) s->e.n_unbounded++;
        if (!exceptional(s, row, i, t, got, exact[i])) compare(s, row, i, got, exact[i], tolerance[i]);
    }
    take_factor(s);
    s->e.n_rows++;
    if (!finite) s->e.n_rows_not_finite++;
    if (s->error_squares > 0)
        keep_larger(&s->e.normwise_u, sqrt(s->error_squares / s->exact_squares) / nb_formats[s->dtype].unit_roundoff);
}

void nb_evidence_finish(struct nb_evidence_sum *s, struct nb_evidence *out) {
    struct nb_evidence *e = &s->e;
    const bool any = e->n_rows_not_finite < e->n_rows;
    if (!any) e->min_rms = e->max_abs = e->max_rho = NAN;
    e->covered =
        any && e->min_rms >= e->claimed.min_rms && e->max_abs <= e->claimed.max_abs && e->max_rho <= e->claimed.max_rho;
    if (e->n == 0) e->bound_ratio = e->max_ulp = e->componentwise_ulp = e->normwise_u = NAN;
    if (e->n == e->n_unbounded) e->bound_ratio = NAN;
    *out = *e;
    free(s);
}

/* ---- as JSON ---------------------------------------------------------------------------------------------------------- */

#define E(KIND, field) NB_MEMBER(KIND, struct nb_evidence, field)

static const struct nb_member range[] = {NB_MEMBER(AMOUNT, struct nb_range, min_rms),
                                         NB_MEMBER(AMOUNT, struct nb_range, max_abs),
                                         NB_MEMBER(AMOUNT, struct nb_range, max_rho), NB_MEMBERS_END};

static const struct nb_member evidence[] = {E(COUNT, n_rows),
                                            E(COUNT, n_rows_not_finite),
                                            E(AMOUNT, min_rms),
                                            E(AMOUNT, max_abs),
                                            E(AMOUNT, max_rho),
                                            NB_MEMBER_STRUCT(struct nb_evidence, claimed, range),
                                            E(BOOL, covered),
                                            E(COUNT, n),
                                            E(COUNT, n_correct),
                                            NB_MEMBER_AS("nan", COUNT, struct nb_evidence, n_nan),
                                            NB_MEMBER_AS("inf", COUNT, struct nb_evidence, n_inf),
                                            NB_MEMBER_AS("zero", COUNT, struct nb_evidence, n_zero),
                                            E(COUNT, n_beyond),
                                            E(COUNT, n_unbounded),
                                            E(AMOUNT, bound_ratio),
                                            E(AMOUNT, max_ulp),
                                            E(AMOUNT, componentwise_ulp),
                                            E(AMOUNT, normwise_u),
                                            NB_MEMBER_OPTIONAL(BOOL, struct nb_evidence, is_declared),
                                            NB_MEMBER_OPTIONAL(COUNT, struct nb_evidence, n_broken),
                                            NB_MEMBER_OPTIONAL(AMOUNT, struct nb_evidence, broken_rho),
                                            NB_MEMBER_OPTIONAL(NUMBER, struct nb_evidence, factor_low),
                                            NB_MEMBER_OPTIONAL(NUMBER, struct nb_evidence, factor_high),
                                            NB_MEMBER_OPTIONAL(AMOUNT, struct nb_evidence, factor_rest),
                                            NB_MEMBERS_END};

cJSON *nb_evidence_to_json(const struct nb_evidence *e) {
    cJSON *json = cJSON_CreateObject();
    nb_json_add_members(json, evidence, e);
    if (e->worst_row < 0) {
        cJSON_AddNullToObject(json, "worst");
        return json;
    }
    cJSON *worst = cJSON_AddArrayToObject(json, "worst");
    cJSON_AddItemToArray(worst, cJSON_CreateNumber((double)e->worst_row));
    cJSON_AddItemToArray(worst, cJSON_CreateNumber((double)e->worst_col));
    return json;
}

static void settle(double *value, double null_means) {
    if (isnan(*value)) *value = null_means;
}

int nb_evidence_from_json(struct nb_evidence *e, const cJSON *json) {
    *e = nothing_known;
    if (nb_json_get_members(json, evidence, e, "evidence") != 0) return -1;
    const cJSON *worst = nb_json_get(json, "worst");
    const double unlimited = e->n > 0 ? (double)INFINITY : (double)NAN;
    settle(&e->claimed.min_rms, 0);
    settle(&e->claimed.max_abs, INFINITY);
    settle(&e->claimed.max_rho, INFINITY);
    settle(&e->max_rho, e->n_rows > e->n_rows_not_finite ? (double)INFINITY : (double)NAN);
    /* infinite: an error where none is allowed */
    settle(&e->bound_ratio, e->n > e->n_unbounded ? (double)INFINITY : (double)NAN);
    if (e->n_broken > 0) settle(&e->broken_rho, INFINITY);
    settle(&e->max_ulp, unlimited);
    settle(&e->componentwise_ulp, unlimited);
    settle(&e->normwise_u, unlimited);
    if (cJSON_GetArraySize(worst) != 2) return 0;
    e->worst_row = (int64_t)cJSON_GetArrayItem(worst, 0)->valuedouble;
    e->worst_col = (int64_t)cJSON_GetArrayItem(worst, 1)->valuedouble;
    return 0;
}
