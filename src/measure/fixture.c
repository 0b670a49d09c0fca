// SPDX-License-Identifier: Apache-2.0
/* Rows of a case, copied anew before each call. */
#include "src/measure/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "src/accuracy/gradient.h"
#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/measure/faults.h"
#include "src/measure/fp_state.h"
#include "src/measure/pool.h"

static void copy_rows(const struct nb_fixture *fixture, const void *from, void *to) {
    const size_t bytes = (size_t)fixture->in.cols * fixture->item;
    for (int64_t r = 0; to && r < fixture->in.rows; r++)
        memcpy((unsigned char *)to + (size_t)r * bytes,
               (const unsigned char *)from + (size_t)(r % fixture->source_rows) * bytes, bytes);
}

static void copy_params(void *to, const void *from, int64_t n, size_t item) {
    if (to) memcpy(to, from, (size_t)n * item);
}

void nb_fixture_reset(struct nb_fixture *fixture) {
    const struct nb_inputs *from = fixture->source;
    struct nb_inputs *to = &fixture->in;
    copy_rows(fixture, from->x, to->x);
    copy_rows(fixture, from->residual, to->residual);
    copy_rows(fixture, from->dy, to->dy);
    copy_rows(fixture, from->dresidual_out, to->dresidual_out);
    copy_params(to->gamma_f32, from->gamma_f32, to->n_params, sizeof(float));
    copy_params(to->beta_f32, from->beta_f32, to->n_params, sizeof(float));
    copy_params(to->gamma_x, from->gamma_x, to->n_params, fixture->item);
    copy_params(to->beta_x, from->beta_x, to->n_params, fixture->item);
    copy_params(to->running_mean, from->running_mean, to->n_params, sizeof(float));
    copy_params(to->running_var, from->running_var, to->n_params, sizeof(float));
    fixture->c.eps = fixture->eps;
    fixture->c.alpha = fixture->alpha;
}

static void *room(const void *wanted, int64_t n, size_t item) {
    return wanted ? nb_alloc((unsigned long long)n, item) : NULL;
}

static void make_inputs(struct nb_fixture *fixture, int64_t rows) {
    const struct nb_inputs *from = fixture->source;
    const int64_t n = rows * from->cols, params = from->n_params;
    fixture->in = (struct nb_inputs){.dtype = from->dtype, .rows = rows, .cols = from->cols, .n_params = params};
    fixture->in.x = room(from->x, n, fixture->item);
    const bool adds = nb_op_adds(fixture->c.op);
    fixture->in.residual = adds ? room(from->residual, n, fixture->item) : NULL;
    fixture->in.dy = room(from->dy, n, fixture->item);
    fixture->in.dresidual_out = adds ? room(from->dresidual_out, n, fixture->item) : NULL;
    fixture->in.gamma_f32 = room(from->gamma_f32, params, sizeof(float));
    fixture->in.beta_f32 = room(from->beta_f32, params, sizeof(float));
    fixture->in.gamma_x = room(from->gamma_x, params, fixture->item);
    fixture->in.beta_x = room(from->beta_x, params, fixture->item);
    fixture->in.running_mean = room(from->running_mean, params, sizeof(float));
    fixture->in.running_var = room(from->running_var, params, sizeof(float));
    nb_fixture_reset(fixture);
}

int nb_fixture_init(struct nb_fixture *fixture, const struct nb_case *c, const struct nb_entry *entry,
                    const struct nb_inputs *in, int64_t rows) {
    *fixture = (struct nb_fixture){
        .c = *c, .entry = entry, .source = in, .item = nb_formats[in->dtype].bytes, .eps = c->eps, .alpha = c->alpha};
    fixture->source_rows = c->shape.rows;
    if (c->op == NB_OP_BATCHNORM) rows = c->shape.rows;
    fixture->c.shape.rows = rows;
    nb_case_call(&fixture->c, &fixture->call);
    const struct nb_kernel *k = entry->kernel;
    if (nb_kernel_applicable(k, &fixture->call)) return -1;
    make_inputs(fixture, rows);
    if (nb_saved_statistics_add(&fixture->in, &fixture->c) != 0) return -1;
    const struct nb_layout_request q = {.wants = nb_buffers_wants(&fixture->c, false),
                                        .placement = NB_PLACE_SLAB,
                                        .rows = rows,
                                        .pad = c->pad,
                                        .n_stats = c->op == NB_OP_BATCHNORM ? in->n_params : rows,
                                        .scratch_bytes = nb_kernel_scratch_bytes(k, &fixture->call),
                                        .seed = c->seed,
                                        .poison = NB_POISON_NAN,
                                        .device = nb_device_of(k->backend)};
    if (nb_buffers_init(&fixture->buffers, &fixture->in, &q) != 0) return -1;
    nb_buffers_attach(&fixture->buffers, &fixture->c, &fixture->call);
    return 0;
}

void nb_fixture_release(struct nb_fixture *fixture) {
    nb_buffers_release(&fixture->buffers);
    nb_inputs_release(&fixture->in);
    *fixture = (struct nb_fixture){0};
}

/* ---- calls ---- */

static void refill(const struct nb_fixture *fixture, int64_t rows) {
    for (int i = 0; i < NB_N_TENSORS; i++) {
        const struct nb_tensor *t = &fixture->buffers.tensors[i];
        if (!t->data || !t->source) continue;
        const size_t bytes = (size_t)t->cols * t->item;
        for (int64_t r = 0; r < t->rows && r < rows; r++)
            memcpy(nb_tensor_row(t, r), (const unsigned char *)t->source + (size_t)r * bytes, bytes);
    }
}

static int renew_saved(struct nb_fixture *fixture) {
    nb_inputs_drop_saved(&fixture->in);
    if (nb_saved_statistics_add(&fixture->in, &fixture->c) != 0) return -1;
    nb_buffers_take_saved(&fixture->buffers);
    return 0;
}

int nb_fixture_call(struct nb_fixture *fixture, int64_t rows, int64_t range, void *result) {
    const struct nb_fp_state state = nb_fp_state();
    const struct nb_tensor *y = nb_buffers_result(&fixture->buffers, &fixture->c);
    const size_t bytes = (size_t)y->cols * y->item;
    if (fixture->in.n_saved > 0 && renew_saved(fixture) != 0) return -1;
    refill(fixture, rows);
    for (int64_t r = 0; r < rows; r++) memset(nb_tensor_row(y, r), 0xff, bytes); /* NaN */
    fixture->call.rows = rows;
    fixture->call.eps = fixture->c.eps;
    fixture->call.alpha = fixture->c.alpha;
    if (nb_buffers_to_device(&fixture->buffers) != 0) return -1;
    nb_faults_set_buffers(&fixture->buffers);
    int code = nb_run_in_ranges(fixture->entry->kernel, &fixture->call, range);
    nb_faults_set_buffers(NULL);
    if (code == 0) code = nb_buffers_from_device(&fixture->buffers);
    nb_fp_state_set(state); /* a kernel may leave it changed */
    for (int64_t r = 0; r < rows && code == 0; r++)
        memcpy((unsigned char *)result + (size_t)r * bytes, nb_tensor_row(y, r), bytes);
    return code == 0 ? 0 : -1;
}
