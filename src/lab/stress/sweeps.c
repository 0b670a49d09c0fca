// SPDX-License-Identifier: Apache-2.0
/* Sweeps of a kernel over rho, scale, eps and n, and its map over scale and rho; both with the lines at which theory says that the
 * formula breaks down. */
#include "src/core/case_key.h"
#include "src/lab/stress/search.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/bound.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/json_fields.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/lab/stress/row_score.h"

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
    N_POINT_STATES
};

/* Errors in units of u rms(y), u = 2^-p of the output; where the spacing of subnormal numbers is wider than 2 u rms(y), in half of
 * it. A row whose exact result is 0 throughout counts as one with rms(y) = 1. NaN: not known. */
struct point {
    enum point_state state;
    double scaled_u;        /* largest |error| of the finite elements */
    double bound_u;         /* largest error that the declared formula allows; NaN where it predicts a loss */
    double noise_u;         /* largest change of the exact result under half an ulp of input noise */
    double max_ulp, bias_u; /* as struct nb_accuracy has them */
    double gain_u;          /* relative error that a row shares, of its worst row, signed, in u */
    double gain_rms_u;      /* root mean square of it over rows */
    double eps_effect_u;    /* effect of eps on y, relative, in u */
    int64_t nan, inf, zero; /* elements */
};

static const char *const state_names[] = {"ok", "nan", "inf", "zero", "unstorable", "undefined", "failed", NULL};

static int refuse(struct scan *s, const char *reason) {
    snprintf(s->trial.reason_text, sizeof s->trial.reason_text, "%s", reason);
    s->trial.reason = s->trial.reason_text;
    return -1;
}

static void set_shape(struct nb_case *c, int64_t rows, int64_t cols) {
    struct nb_shape *shape = &c->shape;
    const long long r = (long long)rows, n = (long long)cols;
    *shape = (struct nb_shape){.rows = rows, .cols = cols};
    snprintf(shape->text, sizeof shape->text, "%lldx%lld", r, n);
    if (c->op != NB_OP_BATCHNORM) return;
    shape->layout = NB_NCHW; /* one sample: a channel is a row */
    shape->n = 1;
    shape->c = rows;
    shape->hw = cols;
    snprintf(shape->text, sizeof shape->text, "nchw:1x%lldx%lldx1", r, n);
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
    *s = (struct scan){.rows = rows, .cols = cols};
    if (c.pass != NB_FORWARD || c.op == NB_OP_COPY) return refuse(s, "only forward passes are scanned");
    if (c.op == NB_OP_BATCHNORM && c.mode == NB_INFERENCE)
        return refuse(s, "statistics do not come from the rows in inference");
    set_shape(&c, rows, cols);
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

/* What is found of one row after the other. */
struct tally {
    struct point *out;
    enum nb_dtype dtype;
    double gain_squares;
    int64_t n_gains;
    bool undefined;
};

static double rms_of(const double *v, int64_t n) {
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += v[i] * v[i];
    return sqrt(squares / (double)n);
}

static double unit_of(double rms, enum nb_dtype dtype) {
    const struct nb_format *f = &nb_formats[dtype];
    return f->unit_roundoff * rms > 0 ? fmax(f->unit_roundoff * rms, f->min_subnormal / 2) : f->unit_roundoff;
}

/* Least squares of error = gain y. */
static void add_gain(struct tally *t, const double *want, const double *got, int64_t cols) {
    double top = 0, bottom = 0;
    for (int64_t i = 0; i < cols; i++) {
        top += (got[i] - want[i]) * want[i];
        bottom += want[i] * want[i];
    }
    const double gain = top / bottom / nb_formats[t->dtype].unit_roundoff;
    if (!isfinite(gain)) return;
    if (!(fabs(gain) <= fabs(t->out->gain_u))) t->out->gain_u = gain;
    t->gain_squares += gain * gain;
    t->n_gains++;
}

static void add_row(struct tally *t, const double *want, const double *got, int64_t cols) {
    struct point *p = t->out;
    const double rms = rms_of(want, cols), unit = unit_of(rms, t->dtype);
    const double limit = nb_formats[t->dtype].overflow;
    t->undefined |= !isfinite(rms);
    for (int64_t i = 0; i < cols; i++) {
        const double error = fabs(got[i] - want[i]) / unit;
        if (isnan(want[i]) || fabs(want[i]) >= limit) continue;
        p->nan += isnan(got[i]);
        p->inf += isinf(got[i]) != 0;
        p->zero += got[i] == 0 && fabs(want[i]) > rms / 16 && nb_round_to(want[i], t->dtype) != 0;
        if (isfinite(error) && !(error <= p->scaled_u)) p->scaled_u = error;
    }
}

static void set_state(struct tally *t, int64_t n) {
    struct point *p = t->out;
    p->state = t->undefined      ? POINT_UNDEFINED
               : p->nan          ? POINT_NAN
               : p->inf          ? POINT_INF
               : 2 * p->zero > n ? POINT_ZERO
                                 : POINT_OK;
    if (t->n_gains) p->gain_rms_u = sqrt(t->gain_squares / (double)t->n_gains);
}

/* The rest, of all rows: what takes the exact result apart, and the a-priori bound. */
struct judgement {
    struct nb_accuracy_sum *sum;
    struct nb_bound bound;
    double *tolerance, *noise, bound_u, noise_u, eps_effect;
};

/* 1 / sqrt(v + eps) against 1 / sqrt(v), as 1 - their ratio. */
static double eps_effect(const struct nb_case *c, double v) {
    const double root = sqrt(v);
    if (c->formula.eps_place == NB_EPS_INSIDE) return c->eps / (v + c->eps + root * sqrt(v + c->eps));
    if (c->formula.eps_place == NB_EPS_OUTSIDE) return c->eps / (root + c->eps);
    return c->eps > root ? 1 - root / c->eps : 0;
}

static void judge_row(struct judgement *j, struct scan *s, int64_t row, const double *want) {
    struct nb_trial *t = &s->trial;
    const double unit = unit_of(rms_of(want, s->cols), t->in.dtype);
    const enum nb_loss loss = nb_bound_row(&j->bound, row, want, j->tolerance);
    if (t->c.op != NB_OP_BATCHNORM) nb_input_noise(j->bound.o, row, j->noise);
    for (int64_t i = 0; i < s->cols; i++) {
        const double allowed = loss == NB_LOSS_NONE ? j->tolerance[i] / unit : NAN;
        if (!isnan(j->bound_u) && !(allowed <= j->bound_u)) j->bound_u = allowed; /* NaN stays */
        j->noise_u = fmax(j->noise_u, j->noise[i] / unit);
        j->tolerance[i] = DBL_MAX; /* no element is left out of the error figures */
    }
    const struct nb_row_values values = {
        .stored = nb_tensor_row(&t->buffers.tensors[NB_T_Y], row), .exact = want, .tolerance = j->tolerance};
    nb_accuracy_row(j->sum, row, s->cols, &values);
    const struct nb_row_truth *truth = nb_oracle_truth(j->bound.o, row, 0);
    if (t->c.op != NB_OP_DYT) j->eps_effect = fmax(j->eps_effect, eps_effect(&t->c, truth->var));
}

static void finish_judgement(struct judgement *j, struct scan *s, struct point *out) {
    struct nb_accuracy a;
    nb_accuracy_finish(j->sum, &a);
    out->max_ulp = a.max_ulp;
    out->bias_u = a.bias_u;
    out->bound_u = j->bound_u;
    out->eps_effect_u = j->eps_effect / nb_formats[s->trial.in.dtype].unit_roundoff;
    out->noise_u = s->trial.c.op == NB_OP_BATCHNORM ? NAN : j->noise_u; /* known of rows alone */
    nb_bound_release(&j->bound);
    free(j->tolerance);
    free(j->noise);
}

static void compare(struct scan *s, const struct nb_oracle *oracle, bool quick, struct point *out) {
    const enum nb_dtype dtype = s->trial.in.dtype;
    struct tally tally = {.out = out, .dtype = dtype};
    struct judgement j = {.eps_effect = s->trial.c.op == NB_OP_DYT ? NAN : 0};
    double *want = nb_alloc((unsigned long long)s->cols, sizeof *want);
    double *got = nb_alloc((unsigned long long)s->cols, sizeof *got);
    if (!quick) {
        j.sum = nb_accuracy_new(nb_number_of(dtype));
        j.tolerance = nb_alloc((unsigned long long)s->cols, sizeof *j.tolerance);
        j.noise = nb_alloc((unsigned long long)s->cols, sizeof *j.noise);
        nb_bound_init(&j.bound, &s->trial.c, oracle, s->chain);
    }
    for (int64_t r = 0; r < s->rows; r++) {
        nb_oracle_row(oracle, r, want);
        for (int64_t i = 0; i < s->cols; i++) got[i] = nb_trial_y(&s->trial, r, i);
        add_row(&tally, want, got, s->cols);
        if (!quick) add_gain(&tally, want, got, s->cols);
        if (!quick) judge_row(&j, s, r, want);
    }
    set_state(&tally, s->rows * s->cols);
    if (!quick) finish_judgement(&j, s, out);
    free(want);
    free(got);
}

/* Calls the kernel at a point. quick: only state and scaled_u are found, at a quarter of the time. */
static void scan_measure(struct scan *s, double scale, double rho, bool quick, struct point *out) {
    struct nb_oracle oracle;
    *out = (struct point){POINT_FAILED, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0, 0, 0};
    for (int64_t i = 0; i < s->rows * s->cols; i++) s->x[i] = scale * (rho + s->z[i]);
    if (!is_storable(s)) {
        out->state = POINT_UNSTORABLE;
        return;
    }
    nb_trial_set_x(&s->trial, s->x, NULL);
    if (nb_trial_run(&s->trial) != 0 || nb_oracle_init(&oracle, &s->trial.c, &s->trial.in) != 0) return;
    compare(s, &oracle, quick, out);
    nb_oracle_release(&oracle);
}

/* ---- What theory says of a scan before it is made: laws of growth of rounding errors, in u rms(y) of the output as a point has them. Standard deviations are shown twofold, about what the largest of a few rows comes to ---- */

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

static const double SD_SHOWN = 2;

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

/* NaN beyond chain u = 1, where the law ends. */
static double law_sum_bias(double chain, double u) {
    return chain * u <= 1 ? nb_stagnation_bias(chain * u, NB_NORMAL_DENSITY) : NAN;
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

static void add_place(cJSON *all, const char *name, double at) {
    if (!(at > 0) || isinf(at)) return;
    cJSON *item = nb_json_add_object(all);
    cJSON_AddStringToObject(item, "name", name);
    cJSON_AddNumberToObject(item, "at", at);
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

/* How much is scanned. */
struct extent {
    int64_t rows, cols, n_max; /* of sweeps; a map has rows of cols, too */
    int64_t map_rows;
    int scales, rhos; /* points of a map's axes */
};
static const struct extent usual = {8, 1024, 16384, 2, 48, 32};

struct held { /* NaN: what the axis moves */
    double n, rows, scale, rho, eps;
};

static cJSON *held_to_json(const struct held *h) {
    static const struct nb_member members[] = {
        NB_MEMBER_OPTIONAL(NUMBER, struct held, n),     NB_MEMBER_OPTIONAL(NUMBER, struct held, rows),
        NB_MEMBER_OPTIONAL(NUMBER, struct held, scale), NB_MEMBER_OPTIONAL(NUMBER, struct held, rho),
        NB_MEMBER_OPTIONAL(NUMBER, struct held, eps),   NB_MEMBERS_END,
    };
    return nb_json_of_members(members, h);
}

static void add_measured(cJSON *points, struct scan *s, double at, double scale, double rho) {
    static const struct nb_member members[] = {
        NB_MEMBER_NAMED(struct point, state, state_names),
        NB_MEMBER(NUMBER, struct point, max_ulp),
        NB_MEMBER(NUMBER, struct point, scaled_u),
        NB_MEMBER(NUMBER, struct point, bias_u),
        NB_MEMBER(NUMBER, struct point, gain_u),
        NB_MEMBER(NUMBER, struct point, gain_rms_u),
        NB_MEMBER(NUMBER, struct point, noise_u),
        NB_MEMBER(NUMBER, struct point, bound_u),
        NB_MEMBER(NUMBER, struct point, eps_effect_u),
        NB_MEMBER(COUNT, struct point, nan),
        NB_MEMBER(COUNT, struct point, inf),
        NB_MEMBER(COUNT, struct point, zero),
        NB_MEMBERS_END,
    };
    struct point p;
    cJSON *json = nb_json_add_object(points);
    scan_measure(s, scale, rho, false, &p);
    nb_json_number(json, "at", at);
    nb_json_add_members(json, members, &p);
}

/* predicted and cliffs are handed over. */
static void add_sweep(cJSON *sweeps, const char *axis, const struct held *held, cJSON *points, cJSON *predicted,
                      cJSON *cliffs) {
    cJSON *sweep = nb_json_add_object(sweeps);
    nb_json_text(sweep, "axis", axis);
    cJSON_AddItemToObject(sweep, "held", held_to_json(held));
    cJSON_AddItemToObject(sweep, "points", points);
    cJSON_AddItemToObject(sweep, "predicted", predicted);
    cJSON_AddItemToObject(sweep, "cliffs", cliffs);
}

static struct held held_by(const struct scan *s) {
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
static void over_rho(cJSON *sweeps, struct scan *s) {
    const int precision = nb_formats[s->trial.in.dtype].precision;
    double at[MOST_POINTS];
    const int n = powers(at, -4, precision - 2);
    struct held held = held_by(s);
    cJSON *points = cJSON_CreateArray();
    for (int i = 0; i < n; i++) add_measured(points, s, at[i], held.scale, at[i]);
    const struct theory theory = theory_of(s);
    held.rho = NAN;
    add_sweep(sweeps, "rho", &held, points, laws_over_rho(&theory, at, n), cJSON_CreateArray());
}

/* All that the dtype can hold. */
static void over_scale(cJSON *sweeps, struct scan *s) {
    const struct nb_format *f = &nb_formats[s->trial.in.dtype];
    double at[MOST_POINTS];
    const int n = powers(at, f->emin - f->precision + 1, f->emax);
    struct held held = held_by(s);
    cJSON *points = cJSON_CreateArray();
    for (int i = 0; i < n; i++) add_measured(points, s, at[i], at[i], held.rho);
    const struct theory theory = theory_of(s);
    held.scale = NAN;
    add_sweep(sweeps, "scale", &held, points, cJSON_CreateArray(), breakdown_scales(&theory, held.rho));
}

/* The values in use, and those between them, where the steps of an eps stored in f16 show. */
static void over_eps(cJSON *sweeps, struct scan *s, double scale) {
    enum { PER_DECADE = 2, FIRST = -12, LAST = -1 };
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
    const struct theory theory = theory_of(s);
    add_sweep(sweeps, "eps", &held, points, laws_over_eps(&theory, scale, held.rho, at, n), breakdown_eps(&theory));
}

/* A scan of its own for each row length; about as many elements in each, at least two rows. */
static void over_n(cJSON *sweeps, const struct nb_trial *t, const struct extent *q) {
    cJSON *points = cJSON_CreateArray(), *predicted = cJSON_CreateArray(), *laws[N_LAWS_OVER_N];
    struct held held = {NAN, NAN, 1, 0, t->c.eps};
    for (int law = 0; law < N_LAWS_OVER_N; law++) laws[law] = add_law(predicted, law_over_n_names[law]);
    for (int64_t n = 16; n <= q->n_max; n *= 4) {
        const int64_t even = q->rows * q->cols / n, rows = even < 2 ? 2 : even > 64 ? 64 : even;
        struct scan s;
        if (scan_init(&s, t, rows, n) == 0) {
            add_measured(points, &s, (double)n, held.scale, held.rho);
            const struct theory theory = theory_of(&s);
            for (int law = 0; law < N_LAWS_OVER_N && t->c.op != NB_OP_DYT; law++)
                add_point(laws[law], (double)n, law_over_n(&theory, (enum law_over_n)law));
        }
        scan_release(&s);
    }
    add_sweep(sweeps, "n", &held, points, predicted, cJSON_CreateArray());
}

static cJSON *sweeps_of(const struct nb_trial *t, const struct extent *q) {
    /* Mean squares of 1.5e-5, near the usual eps, and of 3.7e-9, which is 0 in f16. */
    static const double near_eps = 0x1p-8, eps_alone = 0x1p-14;
    cJSON *sweeps = cJSON_CreateArray();
    struct scan s;
    if (scan_init(&s, t, q->rows, q->cols) == 0) {
        over_rho(sweeps, &s);
        over_scale(sweeps, &s);
        over_eps(sweeps, &s, near_eps);
        over_eps(sweeps, &s, eps_alone);
        over_n(sweeps, t, q);
    }
    scan_release(&s);
    return sweeps;
}

cJSON *nb_sweeps(struct nb_trial *t, const cJSON *options) {
    (void)options;
    return sweeps_of(t, &usual);
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
            scan_measure(s, exp2(at(scale, k)), exp2(at(rho, r)), true, &p);
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
    struct scan s;
    cJSON *json = cJSON_CreateObject();
    if (scan_init(&s, t, q->map_rows, q->cols) != 0) {
        nb_json_text(json, "reason", s.trial.reason);
        scan_release(&s);
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
    scan_release(&s);
    return json;
}

cJSON *nb_landscape(struct nb_trial *t, const cJSON *options) {
    (void)options;
    return map_of(t, &usual);
}
