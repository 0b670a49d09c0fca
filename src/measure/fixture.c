// SPDX-License-Identifier: Apache-2.0
/* Transformations on the stored bits, so that they are exact and cheap. */
#include "src/measure/fixture.h"

#include <math.h>
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
                                        .poison = NB_POISON_NAN};
    if (nb_buffers_init(&fixture->buffers, &fixture->in, &q) != 0) return -1;
    nb_buffers_attach(&fixture->buffers, &fixture->c, &fixture->call);
    return 0;
}

void nb_fixture_release(struct nb_fixture *fixture) {
    nb_buffers_release(&fixture->buffers);
    nb_inputs_release(&fixture->in);
    *fixture = (struct nb_fixture){0};
}

/* ---- bits ---- */

static uint32_t get_bits(const void *array, int64_t i, size_t item) {
    return item == 4 ? ((const uint32_t *)array)[i] : ((const uint16_t *)array)[i];
}

static void set_bits(void *array, int64_t i, size_t item, uint32_t bits) {
    if (item == 4)
        ((uint32_t *)array)[i] = bits;
    else
        ((uint16_t *)array)[i] = (uint16_t)bits;
}

/* A normal number gets another exponent; 0, Inf and NaN stay. */
static bool scale_bits(void *array, int64_t n, enum nb_dtype dtype, int k) {
    const struct nb_format *f = &nb_formats[dtype];
    const int shift = f->precision - 1, last = f->emax - f->emin + 1; /* exponent field of the largest numbers */
    const uint32_t mask = (uint32_t)last + 1;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = get_bits(array, i, f->bytes);
        const int exponent = (int)(bits >> shift & mask);
        const bool is_zero = exponent == 0 && (bits & ((1u << shift) - 1)) == 0;
        if (is_zero || exponent == last + 1) continue;
        if (exponent == 0 || exponent + k < 1 || exponent + k > last) return false;
        set_bits(array, i, f->bytes, bits + ((uint32_t)k << shift));
    }
    return true;
}

static void flip(void *array, int64_t n, size_t item) {
    const uint32_t sign = item == 4 ? 0x80000000u : 0x8000u;
    for (int64_t i = 0; array && i < n; i++) set_bits(array, i, item, get_bits(array, i, item) ^ sign);
}

bool nb_fixture_scale(struct nb_fixture *fixture, int k) {
    const int64_t n = fixture->in.rows * fixture->in.cols, params = fixture->in.n_params;
    if (fixture->c.pass == NB_BACKWARD)
        return scale_bits(fixture->in.dy, n, fixture->in.dtype, k) &&
               (!fixture->in.dresidual_out || scale_bits(fixture->in.dresidual_out, n, fixture->in.dtype, k));
    if (!scale_bits(fixture->in.x, n, fixture->in.dtype, k)) return false;
    if (fixture->in.residual && !scale_bits(fixture->in.residual, n, fixture->in.dtype, k)) return false;
    if (!fixture->in.running_mean) return true;
    return scale_bits(fixture->in.running_mean, params, NB_F32, k) &&
           scale_bits(fixture->in.running_var, params, NB_F32, 2 * k);
}

void nb_fixture_negate(struct nb_fixture *fixture) {
    const int64_t n = fixture->in.rows * fixture->in.cols;
    if (fixture->c.pass == NB_BACKWARD) {
        flip(fixture->in.dy, n, fixture->item);
        flip(fixture->in.dresidual_out, n, fixture->item);
        return;
    }
    flip(fixture->in.x, n, fixture->item);
    flip(fixture->in.residual, n, fixture->item);
    flip(fixture->in.beta_f32, fixture->in.n_params, sizeof(float));
    flip(fixture->in.beta_x, fixture->in.n_params, fixture->item);
    flip(fixture->in.running_mean, fixture->in.n_params, sizeof(float));
}

void nb_fixture_plain_params(struct nb_fixture *fixture) {
    const double gamma = fixture->c.formula.weight_offset ? 0 : 1;
    for (int64_t i = 0; i < fixture->in.n_params; i++) {
        fixture->in.gamma_f32[i] = (float)gamma;
        fixture->in.beta_f32[i] = 0;
        nb_set(fixture->in.gamma_x, i, fixture->in.dtype, gamma);
        nb_set(fixture->in.beta_x, i, fixture->in.dtype, 0);
    }
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

int nb_fixture_run(struct nb_fixture *fixture, int64_t rows, int64_t range) {
    const struct nb_fp_state state = nb_fp_state();
    const struct nb_tensor *y = nb_buffers_result(&fixture->buffers, &fixture->c);
    if (fixture->in.n_saved > 0 && renew_saved(fixture) != 0) return -1;
    refill(fixture, rows);
    for (int64_t r = 0; r < rows; r++) memset(nb_tensor_row(y, r), 0xff, (size_t)y->cols * y->item); /* NaN */
    fixture->call.rows = rows;
    fixture->call.eps = fixture->c.eps;
    fixture->call.alpha = fixture->c.alpha;
    nb_faults_set_buffers(&fixture->buffers);
    const int code = nb_run_in_ranges(fixture->entry->kernel, &fixture->call, range);
    nb_faults_set_buffers(NULL);
    nb_fp_state_set(state); /* a kernel may leave it changed */
    return code == 0 ? 0 : -1;
}

void nb_fixture_take(const struct nb_fixture *fixture, int64_t rows, void *y) {
    const struct nb_tensor *t = nb_buffers_result(&fixture->buffers, &fixture->c);
    const size_t bytes = (size_t)t->cols * t->item;
    for (int64_t r = 0; r < rows; r++) memcpy((unsigned char *)y + (size_t)r * bytes, nb_tensor_row(t, r), bytes);
}
