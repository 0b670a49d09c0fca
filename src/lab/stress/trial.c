// SPDX-License-Identifier: Apache-2.0
/* One set of buffers for all calls: a row is written into the packed inputs, which the oracle reads, and into the tensor, which
 * the kernel reads. */
#include "src/lab/stress/trial.h"

#include <stdio.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/measure/faults.h"
#include "src/measure/fp_state.h"
#include "src/measure/judge.h"
#include "src/measure/pool.h"

static int fail(struct nb_trial *t, const char *reason) {
    snprintf(t->reason_text, sizeof t->reason_text, "%s", reason);
    t->reason = t->reason_text;
    return -1;
}

int nb_trial_init(struct nb_trial *t, const struct nb_case *c, const struct nb_entry *entry) {
    *t = (struct nb_trial){.c = *c, .entry = entry};
    nb_case_call(&t->c, &t->call);
    const char *refused = nb_kernel_applicable(entry->kernel, &t->call);
    if (refused) return fail(t, refused);
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
    if (q.scratch_bytes > NB_SCRATCH_MAX) return fail(t, "scratch_bytes() declares an absurd number");
    if (nb_buffers_init(&t->buffers, &t->in, &q) != 0) return fail(t, "no memory for its buffers and scratch");
    nb_buffers_attach(&t->buffers, &t->c, &t->call);
    return 0;
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
    if (t->alive) t->alive(t->alive_arg);
    nb_faults_set_buffers(&t->buffers);
    const int code = nb_run_in_ranges(t->entry->kernel, &t->call, 0);
    nb_faults_set_buffers(NULL);
    nb_fp_state_set(state); /* a kernel may leave it changed */
    if (code != 0) {
        snprintf(text, sizeof text, "run() returned %d", code);
        return fail(t, text);
    }
    return nb_buffers_verify_margins(&t->buffers, text, sizeof text) == NB_INTACT ? 0 : fail(t, text);
}

double nb_trial_y(const struct nb_trial *t, int64_t row, int64_t col) {
    return nb_get(nb_tensor_row(&t->buffers.tensors[NB_T_Y], row), col, t->in.dtype);
}

int nb_trial_judge(struct nb_trial *t, int64_t chain, struct nb_accuracy *out) {
    struct nb_checked checked = {.chain = chain};
    struct nb_oracle oracle;
    if (nb_oracle_init(&oracle, &t->c, &t->in) != 0) return fail(t, "the oracle does not run with subnormals flushed");
    nb_judge(&t->c, &t->in, &oracle, NULL, &t->buffers, &checked);
    nb_oracle_release(&oracle);
    *out = checked.accuracy;
    return 0;
}

int nb_trial_exact(struct nb_trial *t, double *y) {
    struct nb_oracle oracle;
    if (nb_oracle_init(&oracle, &t->c, &t->in) != 0) return fail(t, "the oracle does not run with subnormals flushed");
    for (int64_t r = 0; r < t->in.rows; r++) nb_oracle_row(&oracle, r, y + r * t->in.cols);
    nb_oracle_release(&oracle);
    return 0;
}

void nb_trial_release(struct nb_trial *t) {
    nb_buffers_release(&t->buffers);
    nb_inputs_release(&t->in);
}
