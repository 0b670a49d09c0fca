// SPDX-License-Identifier: Apache-2.0
/* Transformations on the stored bits, so that they are exact and cheap. */
#include "src/measure/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/saved_statistics.h"
#include "src/core/log.h"
#include "src/measure/faults.h"
#include "src/measure/fp_state.h"
#include "src/measure/pool.h"
#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"

static void copy_rows(const struct nb_rig *rig, const void *from, void *to) {
    const size_t bytes = (size_t)rig->in.cols * rig->item;
    for (int64_t r = 0; to && r < rig->in.rows; r++)
        memcpy((unsigned char *)to + (size_t)r * bytes,
               (const unsigned char *)from + (size_t)(r % rig->source_rows) * bytes, bytes);
}

static void copy_params(void *to, const void *from, int64_t n, size_t item) {
    if (to) memcpy(to, from, (size_t)n * item);
}

void nb_rig_reset(struct nb_rig *rig) {
    const struct nb_inputs *from = rig->source;
    struct nb_inputs *to = &rig->in;
    copy_rows(rig, from->x, to->x);
    copy_rows(rig, from->residual, to->residual);
    copy_rows(rig, from->dy, to->dy);
    copy_rows(rig, from->dresidual_out, to->dresidual_out);
    copy_params(to->gamma_f32, from->gamma_f32, to->n_params, sizeof(float));
    copy_params(to->beta_f32, from->beta_f32, to->n_params, sizeof(float));
    copy_params(to->gamma_x, from->gamma_x, to->n_params, rig->item);
    copy_params(to->beta_x, from->beta_x, to->n_params, rig->item);
    copy_params(to->running_mean, from->running_mean, to->n_params, sizeof(float));
    copy_params(to->running_var, from->running_var, to->n_params, sizeof(float));
    rig->c.eps = rig->eps;
    rig->c.alpha = rig->alpha;
}

static void *room(const void *wanted, int64_t n, size_t item) {
    return wanted ? nb_alloc((unsigned long long)n, item) : NULL;
}

static void make_inputs(struct nb_rig *rig, int64_t rows) {
    const struct nb_inputs *from = rig->source;
    const int64_t n = rows * from->cols, params = from->n_params;
    rig->in = (struct nb_inputs){.dtype = from->dtype, .rows = rows, .cols = from->cols, .n_params = params};
    rig->in.x = room(from->x, n, rig->item);
    const bool adds = nb_op_adds(rig->c.op);
    rig->in.residual = adds ? room(from->residual, n, rig->item) : NULL;
    rig->in.dy = room(from->dy, n, rig->item);
    rig->in.dresidual_out = adds ? room(from->dresidual_out, n, rig->item) : NULL;
    rig->in.gamma_f32 = room(from->gamma_f32, params, sizeof(float));
    rig->in.beta_f32 = room(from->beta_f32, params, sizeof(float));
    rig->in.gamma_x = room(from->gamma_x, params, rig->item);
    rig->in.beta_x = room(from->beta_x, params, rig->item);
    rig->in.running_mean = room(from->running_mean, params, sizeof(float));
    rig->in.running_var = room(from->running_var, params, sizeof(float));
    nb_rig_reset(rig);
}

int nb_rig_init(struct nb_rig *rig, const struct nb_case *c, const struct nb_entry *entry, const struct nb_inputs *in,
                int64_t rows) {
    *rig = (struct nb_rig){
        .c = *c, .entry = entry, .source = in, .item = nb_formats[in->dtype].bytes, .eps = c->eps, .alpha = c->alpha};
    rig->source_rows = c->shape.rows;
    if (c->op == NB_OP_BATCHNORM) rows = c->shape.rows;
    rig->c.shape.rows = rows;
    nb_case_call(&rig->c, &rig->call);
    const struct nb_kernel *k = entry->kernel;
    if (nb_kernel_applicable(k, &rig->call)) return -1;
    make_inputs(rig, rows);
    if (nb_saved_statistics_add(&rig->in, &rig->c) != 0) return -1;
    const struct nb_layout_request q = {.wants = nb_buffers_wants(&rig->c, false),
                                        .placement = NB_PLACE_SLAB,
                                        .rows = rows,
                                        .pad = c->pad,
                                        .n_stats = c->op == NB_OP_BATCHNORM ? in->n_params : rows,
                                        .scratch_bytes = nb_kernel_scratch_bytes(k, &rig->call),
                                        .seed = c->seed,
                                        .poison = NB_POISON_NAN};
    if (nb_buffers_init(&rig->buffers, &rig->in, &q) != 0) return -1;
    nb_buffers_attach(&rig->buffers, &rig->c, &rig->call);
    return 0;
}

void nb_rig_release(struct nb_rig *rig) {
    nb_buffers_release(&rig->buffers);
    nb_inputs_release(&rig->in);
    *rig = (struct nb_rig){0};
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

bool nb_rig_scale(struct nb_rig *rig, int k) {
    const int64_t n = rig->in.rows * rig->in.cols, params = rig->in.n_params;
    if (rig->c.pass == NB_BACKWARD)
        return scale_bits(rig->in.dy, n, rig->in.dtype, k) &&
               (!rig->in.dresidual_out || scale_bits(rig->in.dresidual_out, n, rig->in.dtype, k));
    if (!scale_bits(rig->in.x, n, rig->in.dtype, k)) return false;
    if (rig->in.residual && !scale_bits(rig->in.residual, n, rig->in.dtype, k)) return false;
    if (!rig->in.running_mean) return true;
    return scale_bits(rig->in.running_mean, params, NB_F32, k) &&
           scale_bits(rig->in.running_var, params, NB_F32, 2 * k);
}

void nb_rig_negate(struct nb_rig *rig) {
    const int64_t n = rig->in.rows * rig->in.cols;
    if (rig->c.pass == NB_BACKWARD) {
        flip(rig->in.dy, n, rig->item);
        flip(rig->in.dresidual_out, n, rig->item);
        return;
    }
    flip(rig->in.x, n, rig->item);
    flip(rig->in.residual, n, rig->item);
    flip(rig->in.beta_f32, rig->in.n_params, sizeof(float));
    flip(rig->in.beta_x, rig->in.n_params, rig->item);
    flip(rig->in.running_mean, rig->in.n_params, sizeof(float));
}

void nb_rig_plain_params(struct nb_rig *rig) {
    const double gamma = rig->c.formula.weight_offset ? 0 : 1;
    for (int64_t i = 0; i < rig->in.n_params; i++) {
        rig->in.gamma_f32[i] = (float)gamma;
        rig->in.beta_f32[i] = 0;
        nb_set(rig->in.gamma_x, i, rig->in.dtype, gamma);
        nb_set(rig->in.beta_x, i, rig->in.dtype, 0);
    }
}

/* ---- calls ---- */

static void refill(const struct nb_rig *rig, int64_t rows) {
    for (int i = 0; i < NB_N_TENSORS; i++) {
        const struct nb_tensor *t = &rig->buffers.tensors[i];
        if (!t->data || !t->source) continue;
        const size_t bytes = (size_t)t->cols * t->item;
        for (int64_t r = 0; r < t->rows && r < rows; r++)
            memcpy(nb_tensor_row(t, r), (const unsigned char *)t->source + (size_t)r * bytes, bytes);
    }
}

static int renew_saved(struct nb_rig *rig) {
    nb_inputs_drop_saved(&rig->in);
    if (nb_saved_statistics_add(&rig->in, &rig->c) != 0) return -1;
    nb_buffers_take_saved(&rig->buffers);
    return 0;
}

int nb_rig_run(struct nb_rig *rig, int64_t rows, int64_t range) {
    const struct nb_fp_state state = nb_fp_state();
    const struct nb_tensor *y = nb_buffers_result(&rig->buffers, &rig->c);
    if (rig->in.n_saved > 0 && renew_saved(rig) != 0) return -1;
    refill(rig, rows);
    for (int64_t r = 0; r < rows; r++) memset(nb_tensor_row(y, r), 0xff, (size_t)y->cols * y->item); /* NaN */
    rig->call.rows = rows;
    rig->call.eps = rig->c.eps;
    rig->call.alpha = rig->c.alpha;
    nb_faults_set_buffers(&rig->buffers);
    const int code = nb_run_in_ranges(rig->entry->kernel, &rig->call, range);
    nb_faults_set_buffers(NULL);
    nb_fp_state_set(state); /* a kernel may leave it changed */
    return code == 0 ? 0 : -1;
}

void nb_rig_take(const struct nb_rig *rig, int64_t rows, void *y) {
    const struct nb_tensor *t = nb_buffers_result(&rig->buffers, &rig->c);
    const size_t bytes = (size_t)t->cols * t->item;
    for (int64_t r = 0; r < rows; r++) memcpy((unsigned char *)y + (size_t)r * bytes, nb_tensor_row(t, r), bytes);
}
