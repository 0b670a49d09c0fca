// SPDX-License-Identifier: Apache-2.0
/* From a call to a primitive: key, memory descriptors, flags, arguments. */
#include "kernels/peers/onednn_primitive.h"

#include <stdlib.h>

enum { RMS_NORM_FLAG = 0x20 /* dnnl_rms_norm, which older headers do not name */ };

/* ---- what a call is ------------------------------------------------------------------------------------------------ */

static bool with_dgamma(const struct peer_key *key) {
    return key->pass == NB_BACKWARD && key->affine != NB_AFFINE_NONE;
}
static bool with_dbeta(const struct peer_key *key) {
    return key->pass == NB_BACKWARD && key->affine == NB_AFFINE_GAMMA_BETA;
}
bool onednn_is_batchnorm(const struct peer_key *key) { return key->op == NB_OP_BATCHNORM; }
bool onednn_is_inference(const struct peer_key *key) { return onednn_is_batchnorm(key) && key->mode == NB_INFERENCE; }

static dnnl_data_type_t data_type(uint32_t dtype) {
    return dtype == NB_F32 ? dnnl_f32 : dtype == NB_F16 ? dnnl_f16 : dnnl_bf16;
}

/* A tensor of x's size; stride: elements between two rows. */
static dnnl_status_t describe_tensor(const struct peer_key *key, int64_t stride, dnnl_memory_desc_t *out) {
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

static unsigned flags_of(const struct peer_key *key) {
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

static dnnl_status_t describe_tensors(const struct peer_key *key, struct tensors *t) {
    const bool back = key->pass == NB_BACKWARD;
    dnnl_status_t status = describe_tensor(key, key->x_stride, &t->x);
    if (status == dnnl_success) status = describe_tensor(key, back ? key->dy_stride : key->y_stride, &t->y);
    if (status == dnnl_success && back) status = describe_tensor(key, key->dx_stride, &t->dx);
    return status;
}

static void release_tensors(struct tensors *t) {
    if (t->x) onednn()->dnnl_memory_desc_destroy(t->x);
    if (t->y) onednn()->dnnl_memory_desc_destroy(t->y);
    if (t->dx) onednn()->dnnl_memory_desc_destroy(t->dx);
}

static dnnl_status_t make_forward(const struct peer_key *key, const struct tensors *t, bool training,
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

static dnnl_status_t make_backward(const struct peer_key *key, const struct tensors *t, dnnl_primitive_desc_t *out) {
    const struct onednn *d = onednn();
    const dnnl_prop_kind_t kind = with_dgamma(key) ? dnnl_backward : dnnl_backward_data;
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
    const struct peer_key *key = &p->key;
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

struct wanted {
    bool is_wanted;
    int id;
    size_t field;
    int64_t stride; /* of a tensor; 0: a vector of n numbers */
    int64_t n;
    void *own;
};

/* A memory object without an address yet. */
static dnnl_status_t add_argument(struct onednn_primitive *p, const struct wanted *w) {
    const struct onednn *d = onednn();
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status = w->stride == 0 ? describe_vector(w->n, &desc) : describe_tensor(&p->key, w->stride, &desc);
    if (status != dnnl_success) return status;
    p->arguments[p->n_args] = (struct argument){.field = w->field, .own = w->own};
    p->args[p->n_args].arg = w->id;
    status = d->dnnl_memory_create(&p->args[p->n_args].memory, desc, d->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success) p->n_args++;
    d->dnnl_memory_desc_destroy(desc);
    return status;
}

static dnnl_status_t make_arguments(struct onednn_primitive *p) {
    const struct peer_key *key = &p->key;
    const bool back = key->pass == NB_BACKWARD, inference = onednn_is_inference(key);
    const bool batch_training = onednn_is_batchnorm(key) && !inference, centred = key->op != NB_OP_RMSNORM;
    const bool stats_out = !back && (key->with_stats || batch_training) && !inference;
    const int64_t params = onednn_is_batchnorm(key) ? key->c : key->cols, stats = p->n_stats;
    /* Backward layer normalization counts the shift among its inputs in some releases, and reads it in none. */
    int n_inputs = 0;
    onednn()->dnnl_primitive_desc_query(p->desc, dnnl_query_num_of_inputs_s32, 0, &n_inputs);
    const bool counts_shift = back && with_dbeta(key) && n_inputs > 3 + (key->affine != NB_AFFINE_NONE) + centred;
    const struct wanted list[] = {
        {true, DNNL_ARG_SRC, PEER_FIELD(x), .stride = key->x_stride},
        {!back, DNNL_ARG_DST, PEER_FIELD(y), .stride = key->y_stride},
        {back, DNNL_ARG_DIFF_DST, PEER_FIELD(dy), .stride = key->dy_stride},
        {back, DNNL_ARG_DIFF_SRC, PEER_FIELD(dx), .stride = key->dx_stride},
        {key->affine != NB_AFFINE_NONE, DNNL_ARG_SCALE, PEER_FIELD(gamma), .n = params},
        {!back && key->affine == NB_AFFINE_GAMMA_BETA, DNNL_ARG_SHIFT, PEER_FIELD(beta), .n = params},
        {counts_shift, DNNL_ARG_SHIFT, .n = params, .own = p->unread},
        {with_dgamma(key), DNNL_ARG_DIFF_SCALE, PEER_FIELD(dgamma), .n = params},
        {with_dbeta(key), DNNL_ARG_DIFF_SHIFT, PEER_FIELD(dbeta), .n = params},
        {!back && inference, DNNL_ARG_MEAN, PEER_FIELD(running_mean_in), .n = stats},
        {!back && inference, DNNL_ARG_VARIANCE, PEER_FIELD(running_var_in), .n = stats},
        {(stats_out || back) && centred, DNNL_ARG_MEAN, PEER_FIELD(mean), .n = stats, .own = p->mean},
        {stats_out || back, DNNL_ARG_VARIANCE, .n = stats, .own = p->variance},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        if (!list[i].is_wanted) continue;
        dnnl_status_t status = add_argument(p, &list[i]);
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

static void free_primitive(void *item) {
    const struct onednn *d = onednn();
    struct onednn_primitive *p = item;
    for (int i = 0; i < p->n_args; i++) d->dnnl_memory_destroy(p->args[i].memory);
    if (p->primitive) d->dnnl_primitive_destroy(p->primitive);
    if (p->desc) d->dnnl_primitive_desc_destroy(p->desc);
    free(p->mean);
    free(p->variance);
    free(p->unread);
    free(p);
}

static void *describe(const struct peer_key *key) {
    struct onednn_primitive *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->key = *key;
    p->n_stats = onednn_is_batchnorm(key) ? key->c : key->rows;
    make_desc(p);
    return p;
}

struct onednn_primitive *onednn_find(const struct peer_variant *v, const struct nb_call *call) {
    const struct peer_key key = peer_key_of(v, call);
    return peer_cache_get(&onednn()->primitives, &key, describe);
}

void onednn_forget_all(void) { peer_cache_clear(&onednn()->primitives, free_primitive); }
