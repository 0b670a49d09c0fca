// SPDX-License-Identifier: Apache-2.0
/* From a call to a primitive: key, memory descriptors, flags, arguments. */
#include "kernels/peers/onednn_primitive.h"

#include <stdlib.h>
#include <string.h>

enum { RMS_NORM_FLAG = 0x20 /* dnnl_rms_norm, which older headers do not name */ };

struct cache {
    struct onednn_primitive **items;
    size_t n, last; /* the one used last is looked at first */
};

static struct cache *cache(void) {
    static struct cache primitives;
    return &primitives;
}

/* ---- what a call is ------------------------------------------------------------------------------------------------ */

static void make_key(const struct peer_variant *v, const struct nb_call *call, struct onednn_key *key) {
    memset(key, 0, sizeof *key); /* compared as bytes, padding too */
    key->op = v->op;
    key->pass = v->pass;
    key->dtype = v->dtype;
    key->mode = call->mode;
    key->layout = call->layout;
    key->affine = call->formula.affine;
    key->with_stats = v->pass == NB_FORWARD && call->rstd;
    key->with_dgamma = v->pass == NB_BACKWARD && call->formula.affine != NB_AFFINE_NONE;
    key->with_dbeta = v->pass == NB_BACKWARD && call->formula.affine == NB_AFFINE_GAMMA_BETA;
    key->n_threads = call->n_threads;
    key->rows = call->rows;
    key->cols = call->cols;
    key->n = call->n;
    key->c = call->c;
    key->hw = call->hw;
    key->strides[0] = call->x_stride;
    key->strides[1] = call->y_stride;
    key->strides[2] = call->dy_stride;
    key->strides[3] = call->dx_stride;
    key->eps = call->eps;
}

bool onednn_is_batchnorm(const struct onednn_key *key) { return key->op == NB_OP_BATCHNORM; }
bool onednn_is_inference(const struct onednn_key *key) { return onednn_is_batchnorm(key) && key->mode == NB_INFERENCE; }

static dnnl_data_type_t data_type(uint32_t dtype) {
    return dtype == NB_F32 ? dnnl_f32 : dtype == NB_F16 ? dnnl_f16 : dnnl_bf16;
}

/* A tensor of x's size; stride: elements between two rows. */
static dnnl_status_t describe_tensor(const struct onednn_key *key, int64_t stride, dnnl_memory_desc_t *out) {
    const dnnl_dims_t rows = {key->rows, key->cols}, row_strides = {stride, 1};
    const dnnl_dims_t images = {key->n, key->c, key->hw, 1};
    const dnnl_dims_t nchw = {key->c * stride, stride, 1, 1}, nhwc = {key->hw * stride, 1, stride, stride};
    const dnnl_data_type_t type = data_type(key->dtype);
    if (!onednn_is_batchnorm(key))
        return onednn()->dnnl_memory_desc_create_with_strides(out, 2, rows, type, row_strides);
    return onednn()->dnnl_memory_desc_create_with_strides(out, 4, images, type, key->layout == NB_NCHW ? nchw : nhwc);
}

static dnnl_status_t describe_vector(int64_t n, dnnl_memory_desc_t *out) {
    const dnnl_dims_t dims = {n}, strides = {1};
    return onednn()->dnnl_memory_desc_create_with_strides(out, 1, dims, dnnl_f32, strides);
}

static unsigned flags_of(const struct onednn_key *key) {
    unsigned flags = key->affine == NB_AFFINE_NONE ? 0 : dnnl_use_scale;
    if (key->affine == NB_AFFINE_GAMMA_BETA) flags |= dnnl_use_shift;
    if (key->op == NB_OP_RMSNORM) flags |= RMS_NORM_FLAG;
    if (onednn_is_inference(key)) flags |= dnnl_use_global_stats;
    return flags;
}

/* ---- making a primitive -------------------------------------------------------------------------------------------- */

/* Of x, and y or dy, and dx. */
struct tensors {
    dnnl_memory_desc_t x, y, dx;
};

static dnnl_status_t describe_tensors(const struct onednn_key *key, struct tensors *t) {
    const bool back = key->pass == NB_BACKWARD;
    dnnl_status_t status = describe_tensor(key, key->strides[0], &t->x);
    if (status == dnnl_success) status = describe_tensor(key, key->strides[back ? 2 : 1], &t->y);
    if (status == dnnl_success && back) status = describe_tensor(key, key->strides[3], &t->dx);
    return status;
}

static void release_tensors(struct tensors *t) {
    if (t->x) onednn()->dnnl_memory_desc_destroy(t->x);
    if (t->y) onednn()->dnnl_memory_desc_destroy(t->y);
    if (t->dx) onednn()->dnnl_memory_desc_destroy(t->dx);
}

static dnnl_status_t make_forward(const struct onednn_key *key, const struct tensors *t, bool training,
                                  dnnl_primitive_desc_t *out) {
    const struct onednn *d = onednn();
    const dnnl_prop_kind_t kind = training ? dnnl_forward_training : dnnl_forward_inference;
    const unsigned flags = flags_of(key);
    if (onednn_is_batchnorm(key))
        return d->dnnl_batch_normalization_forward_primitive_desc_create(out, d->engine, kind, t->x, t->y,
                                                                         (float)key->eps, flags, NULL);
    return d->dnnl_layer_normalization_forward_primitive_desc_create(out, d->engine, kind, t->x, t->y, NULL,
                                                                     (float)key->eps, flags, NULL);
}

static dnnl_status_t make_backward(const struct onednn_key *key, const struct tensors *t, dnnl_primitive_desc_t *out) {
    const struct onednn *d = onednn();
    const dnnl_prop_kind_t kind = key->with_dgamma ? dnnl_backward : dnnl_backward_data;
    const unsigned flags = flags_of(key);
    dnnl_primitive_desc_t forward = NULL;
    dnnl_status_t status = make_forward(key, t, true, &forward);
    if (status != dnnl_success) return status;
    if (onednn_is_batchnorm(key))
        status = d->dnnl_batch_normalization_backward_primitive_desc_create(out, d->engine, kind, t->dx, t->y, t->x,
                                                                            (float)key->eps, flags, forward, NULL);
    else
        status = d->dnnl_layer_normalization_backward_primitive_desc_create(
            out, d->engine, kind, t->dx, t->y, t->x, NULL, (float)key->eps, flags, forward, NULL);
    d->dnnl_primitive_desc_destroy(forward);
    return status;
}

static void make_desc(struct onednn_primitive *p) {
    const struct onednn_key *key = &p->key;
    struct tensors t = {0};
    p->status = describe_tensors(key, &t);
    const bool training = key->with_stats || (onednn_is_batchnorm(key) && !onednn_is_inference(key));
    if (p->status == dnnl_success)
        p->status =
            key->pass == NB_BACKWARD ? make_backward(key, &t, &p->desc) : make_forward(key, &t, training, &p->desc);
    release_tensors(&t);
    if (p->status != dnnl_success) {
        p->desc = NULL;
        return;
    }
    onednn()->dnnl_primitive_desc_query(p->desc, dnnl_query_impl_info_str, 0, &p->implementation);
}

/* ---- its arguments ------------------------------------------------------------------------------------------------- */

static int64_t stride_of(const struct onednn_key *key, enum onednn_source source) {
    return key->strides[source == FROM_X ? 0 : source == FROM_Y ? 1 : source == FROM_DY ? 2 : 3];
}

/* A memory object without an address yet. */
static dnnl_status_t add_argument(struct onednn_primitive *p, int id, enum onednn_source source, int64_t n) {
    const struct onednn *d = onednn();
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status =
        n > 0 ? describe_vector(n, &desc) : describe_tensor(&p->key, stride_of(&p->key, source), &desc);
    if (status != dnnl_success) return status;
    p->arguments[p->n_args] = (struct argument){.source = source};
    p->args[p->n_args].arg = id;
    status = d->dnnl_memory_create(&p->args[p->n_args].memory, desc, d->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success) p->n_args++;
    d->dnnl_memory_desc_destroy(desc);
    return status;
}

struct wanted {
    bool is_wanted;
    int id;
    enum onednn_source source;
    int64_t n; /* of a vector; 0: a tensor */
};

static dnnl_status_t make_arguments(struct onednn_primitive *p) {
    const struct onednn_key *key = &p->key;
    const bool back = key->pass == NB_BACKWARD, inference = onednn_is_inference(key);
    const bool batch_training = onednn_is_batchnorm(key) && !inference, centred = key->op != NB_OP_RMSNORM;
    const bool stats_out = !back && (key->with_stats || batch_training) && !inference;
    const int64_t params = onednn_is_batchnorm(key) ? key->c : key->cols, stats = p->n_stats;
    /* Backward layer normalization counts the shift among its inputs in some releases, and reads it in none. */
    int n_inputs = 0;
    onednn()->dnnl_primitive_desc_query(p->desc, dnnl_query_num_of_inputs_s32, 0, &n_inputs);
    const bool counts_shift = back && key->with_dbeta && n_inputs > 3 + (key->affine != NB_AFFINE_NONE) + centred;
    const struct wanted list[] = {
        {true, DNNL_ARG_SRC, FROM_X, 0},
        {!back, DNNL_ARG_DST, FROM_Y, 0},
        {back, DNNL_ARG_DIFF_DST, FROM_DY, 0},
        {back, DNNL_ARG_DIFF_SRC, FROM_DX, 0},
        {key->affine != NB_AFFINE_NONE, DNNL_ARG_SCALE, FROM_GAMMA, params},
        {!back && key->affine == NB_AFFINE_GAMMA_BETA, DNNL_ARG_SHIFT, FROM_BETA, params},
        {counts_shift, DNNL_ARG_SHIFT, FROM_NOWHERE, params},
        {key->with_dgamma, DNNL_ARG_DIFF_SCALE, FROM_DGAMMA, params},
        {key->with_dbeta, DNNL_ARG_DIFF_SHIFT, FROM_DBETA, params},
        {!back && inference, DNNL_ARG_MEAN, FROM_RUNNING_MEAN, stats},
        {!back && inference, DNNL_ARG_VARIANCE, FROM_RUNNING_VAR, stats},
        {stats_out && centred, DNNL_ARG_MEAN, FROM_MEAN_OUT, stats},
        {back && centred, DNNL_ARG_MEAN, FROM_MEAN_IN, stats},
        {stats_out || back, DNNL_ARG_VARIANCE, FROM_VARIANCE, stats},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        if (!list[i].is_wanted) continue;
        dnnl_status_t status = add_argument(p, list[i].id, list[i].source, list[i].n);
        if (status != dnnl_success) return status;
    }
    return dnnl_success;
}

dnnl_status_t onednn_make(struct onednn_primitive *p) {
    p->mean = calloc((size_t)p->n_stats, sizeof(float));
    p->variance = calloc((size_t)p->n_stats, sizeof(float));
    p->unread = calloc((size_t)(onednn_is_batchnorm(&p->key) ? p->key.c : p->key.cols), sizeof(float));
    if (!p->mean || !p->variance || !p->unread) return dnnl_out_of_memory;
    dnnl_status_t status = make_arguments(p);
    return status == dnnl_success ? onednn()->dnnl_primitive_create(&p->primitive, p->desc) : status;
}

static void free_primitive(struct onednn_primitive *p) {
    const struct onednn *d = onednn();
    for (int i = 0; i < p->n_args; i++) d->dnnl_memory_destroy(p->args[i].memory);
    if (p->primitive) d->dnnl_primitive_destroy(p->primitive);
    if (p->desc) d->dnnl_primitive_desc_destroy(p->desc);
    free(p->mean);
    free(p->variance);
    free(p->unread);
    free(p);
}

struct onednn_primitive *onednn_find(const struct peer_variant *v, const struct nb_call *call) {
    struct cache *known = cache();
    struct onednn_key key;
    make_key(v, call, &key);
    for (size_t i = 0; i < known->n; i++) {
        size_t at = (known->last + i) % known->n;
        if (memcmp(&known->items[at]->key, &key, sizeof key) != 0) continue;
        known->last = at;
        return known->items[at];
    }
    struct onednn_primitive **items = realloc(known->items, (known->n + 1) * sizeof *items);
    if (!items) return NULL;
    known->items = items;
    struct onednn_primitive *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->key = key;
    p->n_stats = onednn_is_batchnorm(&key) ? key.c : key.rows;
    make_desc(p);
    known->last = known->n;
    known->items[known->n++] = p;
    return p;
}

void onednn_forget_all(void) {
    struct cache *known = cache();
    for (size_t i = 0; i < known->n; i++) free_primitive(known->items[i]);
    free(known->items);
    *known = (struct cache){0};
}
