// SPDX-License-Identifier: Apache-2.0
/* Points of sweeps and maps. A predicted loss is counted here like any other: whether the formula excuses it is for the grades to
 * say, a map shows where it happens. */
#include "src/lab/stress/scan.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/accuracy/bound.h"
#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/lab/stress/row_score.h"

const char *const nb_point_state_names[] = {"ok", "nan", "inf", "zero", "unstorable", "undefined", "failed", NULL};

static int refuse(struct nb_scan *s, const char *reason) {
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

static void draw(struct nb_scan *s, uint64_t seed) {
    const struct nb_random stream = nb_random_stream(seed, 0);
    const int64_t n = s->rows * s->cols;
    s->z = nb_alloc((unsigned long long)n, sizeof *s->z);
    s->x = nb_alloc((unsigned long long)n, sizeof *s->x);
    for (int64_t i = 0; i < n; i++) {
        s->z[i] = nb_random_normal(stream, (uint64_t)i);
        s->z_max = fmax(s->z_max, fabs(s->z[i]));
    }
}

int nb_scan_init(struct nb_scan *s, const struct nb_trial *like, int64_t rows, int64_t cols, uint64_t seed) {
    assert(rows >= 1 && cols >= 1);
    struct nb_case c = like->c;
    *s = (struct nb_scan){.rows = rows, .cols = cols};
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
    draw(s, seed);
    return 0;
}

void nb_scan_release(struct nb_scan *s) {
    nb_trial_release(&s->trial);
    free(s->z);
    free(s->x);
    *s = (struct nb_scan){0};
}

/* ---- one point ---- */

static bool is_storable(const struct nb_scan *s) {
    const double limit = nb_formats[s->trial.in.dtype].overflow;
    for (int64_t i = 0; i < s->rows * s->cols; i++)
        if (!(fabs(s->x[i]) < limit)) return false;
    return true;
}

/* What is found of one row after the other. */
struct tally {
    struct nb_scan_point *out;
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
    struct nb_scan_point *p = t->out;
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
    struct nb_scan_point *p = t->out;
    p->state = t->undefined      ? NB_POINT_UNDEFINED
               : p->nan          ? NB_POINT_NAN
               : p->inf          ? NB_POINT_INF
               : 2 * p->zero > n ? NB_POINT_ZERO
                                 : NB_POINT_OK;
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

static void judge_row(struct judgement *j, struct nb_scan *s, int64_t row, const double *want) {
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

static void finish_judgement(struct judgement *j, struct nb_scan *s, struct nb_scan_point *out) {
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

static void compare(struct nb_scan *s, const struct nb_oracle *oracle, bool quick, struct nb_scan_point *out) {
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

void nb_scan_measure(struct nb_scan *s, double scale, double rho, bool quick, struct nb_scan_point *out) {
    struct nb_oracle oracle;
    *out = (struct nb_scan_point){NB_POINT_FAILED, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0, 0, 0};
    for (int64_t i = 0; i < s->rows * s->cols; i++) s->x[i] = scale * (rho + s->z[i]);
    if (!is_storable(s)) {
        out->state = NB_POINT_UNSTORABLE;
        return;
    }
    nb_trial_set_x(&s->trial, s->x, NULL);
    if (nb_trial_run(&s->trial) != 0 || nb_oracle_init(&oracle, &s->trial.c, &s->trial.in) != 0) return;
    compare(s, &oracle, quick, out);
    nb_oracle_release(&oracle);
}
