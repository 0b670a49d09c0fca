// SPDX-License-Identifier: Apache-2.0
/* One set of buffers for all calls: a row is written into the packed inputs, which the oracle reads, and into the tensor, which
 * the kernel reads. */
#include "src/lab/stress/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/timer.h"
#include "src/measure/check.h"
#include "src/measure/faults.h"
#include "src/measure/pool.h"
#include "src/measure/worker.h"
#include "src/record/record.h"

static int fail(struct nb_trial *t, const char *reason) {
    snprintf(t->reason_text, sizeof t->reason_text, "%s", reason);
    t->reason = t->reason_text;
    return -1;
}

int nb_trial_init(struct nb_trial *t, const struct nb_case *c, const struct nb_entry *entry) {
    *t = (struct nb_trial){.c = *c, .entry = entry};
    nb_case_call(&t->c, &t->call);
    struct nb_checked declared = {.status = NB_OK};
    if (!nb_check_declared(&t->c, entry->kernel, &t->call, &declared)) return fail(t, declared.reason);
    if (nb_inputs_init(&t->in, &t->c) != 0) return fail(t, "no memory for its inputs");
    const struct nb_layout_request q = {
        .wants = nb_buffers_wants(&t->c, false),
        .placement = NB_PLACE_END,
        .rows = t->c.shape.rows,
        .pad = t->c.pad,
        .n_stats = t->c.op == NB_OP_BATCHNORM ? t->in.n_params : t->c.shape.rows,
        .scratch_bytes = nb_kernel_scratch_bytes(entry->kernel, &t->call),
        .poison = NB_POISON_NAN,
    };
    if (nb_buffers_init(&t->buffers, &t->in, &q) != 0) return fail(t, "no memory for its buffers and scratch");
    nb_buffers_attach(&t->buffers, &t->c, &t->call);
    return nb_declares_units(entry->kernel, &t->call) ? 0 : fail(t, "n_units() declares no unit in any phase");
}

void nb_trial_set_eps(struct nb_trial *t, double eps) {
    t->c.eps = t->call.eps = eps;
    snprintf(t->c.eps_text, sizeof t->c.eps_text, "%.17g", eps);
}

/* The tensor's rows as the packed source has them. */
static void refill(struct nb_tensor *tensor, const void *source) {
    const size_t bytes = (size_t)tensor->cols * tensor->item;
    for (int64_t r = 0; tensor->data && r < tensor->rows; r++)
        memcpy(nb_tensor_row(tensor, r), (const unsigned char *)source + (size_t)r * bytes, bytes);
}

static void set_param(struct nb_trial *t, const double *values, double fallback, float *f32, void *in_x) {
    for (int64_t i = 0; i < t->in.n_params; i++) {
        const double value = values ? values[i] : fallback;
        nb_set(f32, i, NB_F32, value);
        nb_set(in_x, i, t->in.dtype, value);
    }
}

void nb_trial_set_params(struct nb_trial *t, const double *gamma, const double *beta) {
    set_param(t, gamma, 1, t->in.gamma_f32, t->in.gamma_x);
    set_param(t, beta, 0, t->in.beta_f32, t->in.beta_x);
    struct nb_tensor *tensors = t->buffers.tensors;
    refill(&tensors[NB_T_GAMMA_F32], t->in.gamma_f32);
    refill(&tensors[NB_T_BETA_F32], t->in.beta_f32);
    refill(&tensors[NB_T_GAMMA_X], t->in.gamma_x);
    refill(&tensors[NB_T_BETA_X], t->in.beta_x);
}

void nb_trial_set_x(struct nb_trial *t, const double *x, const double *residual) {
    const int64_t n = t->in.rows * t->in.cols;
    for (int64_t i = 0; i < n; i++) nb_set(t->in.x, i, t->in.dtype, x[i]);
    for (int64_t i = 0; t->in.residual && i < n; i++)
        nb_set(t->in.residual, i, t->in.dtype, residual ? residual[i] : 0);
    refill(&t->buffers.tensors[NB_T_X], t->in.x);
    if (t->in.residual) refill(&t->buffers.tensors[NB_T_RESIDUAL], t->in.residual);
}

int nb_trial_run(struct nb_trial *t) {
    const struct nb_fp_state state = nb_fp_state();
    char text[200];
    t->reason = NULL;
    t->calls++;
    if (t->worker) nb_worker_at(t->worker, t->at);
    nb_faults_set_buffers(&t->buffers);
    nb_worked("trial", t->entry->file, 1, 0);
    const int code = nb_run_in_ranges(t->entry->kernel, &t->call, 0);
    nb_faults_set_buffers(NULL);
    nb_fp_state_set(state); /* a kernel may leave it changed */
    if (code != 0) {
        nb_say_returned(text, sizeof text, t->entry->kernel, code);
        return fail(t, text);
    }
    return nb_buffers_verify_margins(&t->buffers, text, sizeof text) == NB_INTACT ? 0 : fail(t, text);
}

double nb_trial_y(const struct nb_trial *t, int64_t row, int64_t col) {
    return nb_get(nb_tensor_row(&t->buffers.tensors[NB_T_Y], row), col, t->in.dtype);
}

void nb_trial_release(struct nb_trial *t) {
    nb_buffers_release(&t->buffers);
    nb_inputs_release(&t->in);
}

/* ---- Rows by name and by file ---- */

enum stream { STREAM_X, STREAM_RESIDUAL }; /* as src/plan/inputs.c numbers them */

static double *drawn(const struct nb_trial *t, uint64_t seed, enum stream stream) {
    const struct nb_random random = nb_random_stream(seed, stream);
    const int64_t n = t->in.rows * t->in.cols;
    double *z = nb_alloc((unsigned long long)n, sizeof *z);
    for (int64_t i = 0; i < n; i++) z[i] = nb_random_normal(random, (uint64_t)i);
    return z;
}

void nb_draws_init(struct nb_draws *d, const struct nb_trial *t, uint64_t seed) {
    struct nb_case c = t->c;
    struct nb_inputs in released_by(nb_inputs_release) = {0};
    *d = (struct nb_draws){.seed = seed, .n = t->in.rows * t->in.cols, .z = drawn(t, seed, STREAM_X)};
    if (t->in.residual) d->z_other = drawn(t, seed, STREAM_RESIDUAL);
    c.seed = seed;
    snprintf(c.data, sizeof c.data, "normal");
    if (nb_inputs_init(&in, &c) != 0) return;
    d->gamma = nb_alloc((unsigned long long)in.n_params, sizeof *d->gamma);
    d->beta = nb_alloc((unsigned long long)in.n_params, sizeof *d->beta);
    for (int64_t i = 0; i < in.n_params; i++) {
        d->gamma[i] = (double)in.gamma_f32[i];
        d->beta[i] = (double)in.beta_f32[i];
    }
}

void nb_draws_release(struct nb_draws *d) {
    nb_free_all(d->z, d->z_other, d->gamma, d->beta);
    *d = (struct nb_draws){0};
}

static void fill(double *to, const double *z, const struct nb_trial *t, enum nb_family family, double p) {
    const double largest = nb_formats[t->in.dtype].max_finite;
    for (int64_t i = 0; i < t->in.rows * t->in.cols; i++) {
        const double v = family == NB_FAMILY_SCALE ? p * z[i] : p + z[i];
        to[i] = v > largest ? largest : v < -largest ? -largest : v;
    }
}

void nb_trial_load(struct nb_trial *t, const struct nb_draws *d, enum nb_family family, double p) {
    double *x freed = nb_alloc(2 * (unsigned long long)d->n, sizeof *x), *other = d->z_other ? x + d->n : NULL;
    fill(x, d->z, t, family, p);
    if (other) fill(other, d->z_other, t, family, p);
    nb_trial_set_params(t, d->gamma, d->beta);
    nb_trial_set_x(t, x, other);
}

char *nb_trial_key(const struct nb_trial *t, const char *data, uint64_t seed, int64_t rows, char **replay) {
    struct nb_case c = t->c;
    c.seed = seed;
    snprintf(c.data, sizeof c.data, "%s", data);
    if (rows > 0) c.shape = nb_shape_of(rows, c.shape.cols);
    char *key = nb_case_key(&c);
    *replay =
        nb_replay_command(&(struct nb_replay){key, "--check-only", t->entry->plugin ? t->entry->file : NULL, NULL});
    return key;
}
