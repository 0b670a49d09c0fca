// SPDX-License-Identifier: Apache-2.0
/* Attention, where a head is a block of columns of q, k, v, multiplied where it lies; the feed-forward part; a sublayer. */
#include "src/train/transformer_layers.h"

#include <math.h>
#include <string.h>

#include "src/train/matrix.h"
#include "src/train/tensor.h"

static int64_t rows_of(const struct nb_attention *a) { return a->batch * a->sequence; }
static int64_t q_width(const struct nb_attention *a) { return a->heads * a->width; }
static int64_t kv_width(const struct nb_attention *a) { return a->kv_heads * a->width; }

/* ---- set-up ---- */

static void make_attention_buffers(struct nb_attention_buffers *out, struct nb_model *model,
                                   const struct nb_transformer_shape *shape) {
    const int64_t rows = (int64_t)shape->batch * shape->sequence;
    const int64_t q = rows * shape->hidden, kv = q / shape->heads * shape->kv_heads;
    *out = (struct nb_attention_buffers){
        .dq = nb_arena_take(&model->passing, q),
        .dk = nb_arena_take(&model->passing, kv),
        .dv = nb_arena_take(&model->passing, kv),
        .dmixed = nb_arena_take(&model->passing, q),
        .dscores = nb_arena_take(&model->passing, (int64_t)shape->sequence * shape->sequence),
        .normed = shape->qk_norm ? nb_arena_take(&model->passing, q) : NULL,
    };
}

static struct nb_parameter *add_matrix(struct nb_model *model, const char *name, const char *what, int64_t out,
                                       int64_t in, double deviation) {
    return nb_parameter_matrix(&model->parameters, name, what, out, in, model->options.seed,
                               deviation > 0 ? deviation : sqrt(2.0 / (double)(in + out)));
}

static void init_norms(struct nb_attention *a, const char *name, struct nb_model *model) {
    nb_norm_layer_init(&a->q_norm, model, nb_place_of(name, "q_norm").text, rows_of(a) * a->heads, a->width);
    nb_norm_layer_init(&a->k_norm, model, nb_place_of(name, "k_norm").text, rows_of(a) * a->kv_heads, a->width);
    a->q_before = nb_arena_take(&model->kept, rows_of(a) * q_width(a));
    a->k_before = nb_arena_take(&model->kept, rows_of(a) * kv_width(a));
}

void nb_attention_init(struct nb_attention *a, const char *name, struct nb_model *model,
                       const struct nb_transformer_shape *shape, struct nb_attention_buffers *buffers,
                       const struct nb_rope *rope) {
    if (!buffers->dq) make_attention_buffers(buffers, model, shape);
    *a = (struct nb_attention){.batch = shape->batch,
                               .sequence = shape->sequence,
                               .heads = shape->heads,
                               .kv_heads = shape->kv_heads,
                               .width = shape->hidden / shape->heads,
                               .hidden = shape->hidden,
                               .causal = model->options.causal,
                               .dtype = model->options.dtype,
                               .qk_norm = shape->qk_norm && model->options.norm.kind != NB_NORM_NONE,
                               .rope = rope,
                               .buffers = *buffers};
    a->wq = add_matrix(model, name, "wq", q_width(a), a->hidden, shape->deviation);
    a->wk = add_matrix(model, name, "wk", kv_width(a), a->hidden, shape->deviation);
    a->wv = add_matrix(model, name, "wv", kv_width(a), a->hidden, shape->deviation);
    a->wo = add_matrix(model, name, "wo", a->hidden, q_width(a), shape->deviation);
    a->q = nb_arena_take(&model->kept, rows_of(a) * q_width(a));
    a->k = nb_arena_take(&model->kept, rows_of(a) * kv_width(a));
    a->v = nb_arena_take(&model->kept, rows_of(a) * kv_width(a));
    a->weights = nb_arena_take(&model->kept, a->batch * a->heads * a->sequence * a->sequence);
    a->mixed = nb_arena_take(&model->kept, rows_of(a) * q_width(a));
    if (a->qk_norm) init_norms(a, name, model);
}

/* ---- heads ---- */

/* Where head h of sequence b lies: query heads share keys and values in runs. */
struct head {
    int64_t q_at, kv_at, weights_at;
};
static struct head head_at(const struct nb_attention *a, int64_t b, int64_t h) {
    const int64_t kv = h / (a->heads / a->kv_heads);
    return (struct head){b * a->sequence * q_width(a) + h * a->width, b * a->sequence * kv_width(a) + kv * a->width,
                         (b * a->heads + h) * a->sequence * a->sequence};
}

/* Products with an n x n matrix of weights or scores, n the sequence: w = left right^T, and y = w right or w^T right. */
static void multiply_heads(const struct nb_attention *a, float *w, const float *left, int64_t left_stride,
                           const float *right, int64_t right_stride, float factor) {
    const int64_t n = a->sequence;
    nb_matrix_product(&(struct nb_product){.a = left,
                                           .b = right,
                                           .c = w,
                                           .a_stride = left_stride,
                                           .b_stride = right_stride,
                                           .c_stride = n,
                                           .m = n,
                                           .n = n,
                                           .k = a->width,
                                           .b_transposed = true,
                                           .factor = factor});
}
static void apply_weights(const struct nb_attention *a, float *y, int64_t y_stride, const float *w, bool transposed,
                          const float *right, int64_t right_stride, float factor, float keep) {
    const int64_t n = a->sequence;
    nb_matrix_product(&(struct nb_product){.a = w,
                                           .b = right,
                                           .c = y,
                                           .a_stride = n,
                                           .b_stride = right_stride,
                                           .c_stride = y_stride,
                                           .m = n,
                                           .n = a->width,
                                           .k = n,
                                           .a_transposed = transposed,
                                           .factor = factor,
                                           .keep = keep});
}

/* Over the first `seen` of n scores; the others get the weight 0. */
static void softmax_row(float *w, int64_t seen, int64_t n) {
    float most = w[0];
    double sum = 0;
    for (int64_t j = 1; j < seen; j++) most = w[j] > most ? w[j] : most;
    for (int64_t j = 0; j < seen; j++) {
        w[j] = expf(w[j] - most);
        sum += w[j];
    }
    const float scale = (float)(1 / sum);
    for (int64_t j = 0; j < seen; j++) w[j] *= scale;
    for (int64_t j = seen; j < n; j++) w[j] = 0;
}

static float score_scale(const struct nb_attention *a) { return (float)(1 / sqrt((double)a->width)); }

static void head_forward(struct nb_attention *a, struct head at) {
    const int64_t n = a->sequence;
    float *w = a->weights + at.weights_at;
    multiply_heads(a, w, a->q + at.q_at, q_width(a), a->k + at.kv_at, kv_width(a), score_scale(a));
    nb_round_tensor(w, n * n, a->dtype);
    for (int64_t i = 0; i < n; i++) softmax_row(w + i * n, a->causal ? i + 1 : n, n);
    nb_round_tensor(w, n * n, a->dtype);
    apply_weights(a, a->mixed + at.q_at, q_width(a), w, false, a->v + at.kv_at, kv_width(a), 1, 0);
}

/* dscores = w * (dw - sum of w dw over the row), in the place of dw. */
static void softmax_back(float *dw, const float *w, int64_t n) {
    for (int64_t i = 0; i < n; i++, dw += n, w += n) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += (double)w[j] * (double)dw[j];
        for (int64_t j = 0; j < n; j++) dw[j] = w[j] * (dw[j] - (float)sum);
    }
}

static void head_backward(struct nb_attention *a, struct head at) {
    const int64_t n = a->sequence, qs = q_width(a), kvs = kv_width(a);
    const struct nb_attention_buffers *r = &a->buffers;
    const float *w = a->weights + at.weights_at, *dmixed = r->dmixed + at.q_at;
    multiply_heads(a, r->dscores, dmixed, qs, a->v + at.kv_at, kvs, 1);
    nb_round_tensor(r->dscores, n * n, a->dtype);
    apply_weights(a, r->dv + at.kv_at, kvs, w, true, dmixed, qs, 1, 1);
    softmax_back(r->dscores, w, n);
    nb_round_tensor(r->dscores, n * n, a->dtype);
    apply_weights(a, r->dq + at.q_at, qs, r->dscores, false, a->k + at.kv_at, kvs, score_scale(a), 0);
    apply_weights(a, r->dk + at.kv_at, kvs, r->dscores, true, a->q + at.q_at, qs, score_scale(a), 1);
}

/* ---- the whole ---- */

/* A product, then where there is one the norm of each head, then the rotation. */
static void project(struct nb_attention *a, float *y, float *before, struct nb_norm_layer *norm,
                    const struct nb_parameter *w, const float *x, int64_t heads, bool training) {
    const int64_t rows = rows_of(a), n = rows * heads * a->width;
    float *product = a->qk_norm ? before : y;
    nb_linear_forward(product, x, nb_parameter_used(w), NULL, rows, a->hidden, heads * a->width);
    nb_round_tensor(product, n, a->dtype);
    nb_norm_forward(norm, y, product, 0, rows * heads, training);
    if (!a->rope) return;
    nb_rope_forward(a->rope, y, rows, heads);
    nb_round_tensor(y, n, a->dtype);
}

void nb_attention_forward(struct nb_attention *a, float *y, const float *x, bool training) {
    const int64_t rows = rows_of(a);
    project(a, a->q, a->q_before, &a->q_norm, a->wq, x, a->heads, training);
    project(a, a->k, a->k_before, &a->k_norm, a->wk, x, a->kv_heads, training);
    nb_linear_forward(a->v, x, nb_parameter_used(a->wv), NULL, rows, a->hidden, kv_width(a));
    nb_round_tensor(a->v, rows * kv_width(a), a->dtype);
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++) head_forward(a, head_at(a, b, h));
    nb_round_tensor(a->mixed, rows * q_width(a), a->dtype);
    nb_linear_forward(y, a->mixed, nb_parameter_used(a->wo), NULL, rows, q_width(a), a->hidden);
    nb_round_tensor(y, rows * a->hidden, a->dtype);
}

/* Back through rotation, norm and product; adds to dx. */
static void project_back(struct nb_attention *a, float *dx, float *d, const float *before, struct nb_norm_layer *norm,
                         struct nb_parameter *w, const float *x, int64_t heads) {
    const int64_t rows = rows_of(a), width = heads * a->width;
    nb_round_tensor(d, rows * width, a->dtype);
    if (a->rope) {
        nb_rope_backward(a->rope, d, rows, heads);
        nb_round_tensor(d, rows * width, a->dtype);
    }
    const float *dproduct = nb_norm_backward(norm, a->buffers.normed, d, before, 0, rows * heads);
    nb_linear_backward(NULL, w->gradient, NULL, dproduct, x, NULL, rows, a->hidden, width);
    nb_matrix_multiply(NB_AS_STORED, dx, dproduct, nb_parameter_used(w), rows, a->hidden, width, 1);
}

void nb_attention_backward(struct nb_attention *a, float *dx, const float *dy, const float *x) {
    const int64_t rows = rows_of(a), kv = rows * kv_width(a);
    const struct nb_attention_buffers *r = &a->buffers;
    nb_linear_backward(r->dmixed, a->wo->gradient, NULL, dy, a->mixed, nb_parameter_used(a->wo), rows, q_width(a),
                       a->hidden);
    nb_round_tensor(r->dmixed, rows * q_width(a), a->dtype);
    memset(r->dk, 0, (size_t)kv * sizeof *r->dk); /* heads that share them add up */
    memset(r->dv, 0, (size_t)kv * sizeof *r->dv);
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++) head_backward(a, head_at(a, b, h));
    nb_round_tensor(r->dv, kv, a->dtype);
    nb_linear_backward(dx, a->wv->gradient, NULL, r->dv, x, nb_parameter_used(a->wv), rows, a->hidden, kv_width(a));
    project_back(a, dx, r->dk, a->k_before, &a->k_norm, a->wk, x, a->kv_heads);
    project_back(a, dx, r->dq, a->q_before, &a->q_norm, a->wq, x, a->heads);
    nb_round_tensor(dx, rows * a->hidden, a->dtype);
}

/* ---- the feed-forward part, gated or not ---- */

void nb_feed_forward_init(struct nb_feed_forward *f, const char *name, struct nb_model *model,
                          const struct nb_transformer_shape *shape, struct nb_feed_forward_buffers *buffers) {
    const int64_t rows = (int64_t)shape->batch * shape->sequence, n = rows * shape->ffn;
    if (!buffers->dup)
        *buffers = (struct nb_feed_forward_buffers){.dgate = shape->swiglu ? nb_arena_take(&model->passing, n) : NULL,
                                                    .dup = nb_arena_take(&model->passing, n),
                                                    .dinner = nb_arena_take(&model->passing, n)};
    *f = (struct nb_feed_forward){
        .rows = rows, .hidden = shape->hidden, .ffn = shape->ffn, .dtype = model->options.dtype, .buffers = *buffers};
    if (shape->swiglu) {
        f->gate = add_matrix(model, name, "gate", shape->ffn, shape->hidden, shape->deviation);
        f->at_gate = nb_arena_take(&model->kept, n);
    } else {
        f->bias = nb_parameter_vector(&model->parameters, name, "bias", shape->ffn, 0);
        f->bias_down = nb_parameter_vector(&model->parameters, name, "bias_down", shape->hidden, 0);
    }
    f->up = add_matrix(model, name, "up", shape->ffn, shape->hidden, shape->deviation);
    f->down = add_matrix(model, name, "down", shape->hidden, shape->ffn, shape->deviation);
    f->at_up = nb_arena_take(&model->kept, n);
    f->inner = nb_arena_take(&model->kept, n);
}

static const float *value_of(const struct nb_parameter *p) { return p ? p->value : NULL; }
static float *gradient_of(const struct nb_parameter *p) { return p ? p->gradient : NULL; }

void nb_feed_forward_forward(struct nb_feed_forward *f, float *y, const float *x) {
    const int64_t n = f->rows * f->ffn;
    nb_linear_forward(f->at_up, x, nb_parameter_used(f->up), value_of(f->bias), f->rows, f->hidden, f->ffn);
    nb_round_tensor(f->at_up, n, f->dtype);
    if (f->gate) {
        nb_linear_forward(f->at_gate, x, nb_parameter_used(f->gate), NULL, f->rows, f->hidden, f->ffn);
        nb_round_tensor(f->at_gate, n, f->dtype);
        nb_swiglu_forward(f->inner, f->at_gate, f->at_up, n);
    } else {
        nb_relu_forward(f->inner, f->at_up, n);
    }
    nb_round_tensor(f->inner, n, f->dtype);
    nb_linear_forward(y, f->inner, nb_parameter_used(f->down), value_of(f->bias_down), f->rows, f->ffn, f->hidden);
    nb_round_tensor(y, f->rows * f->hidden, f->dtype);
}

void nb_feed_forward_backward(struct nb_feed_forward *f, float *dx, const float *dy, const float *x) {
    const int64_t n = f->rows * f->ffn;
    const struct nb_feed_forward_buffers *r = &f->buffers;
    nb_linear_backward(r->dinner, f->down->gradient, gradient_of(f->bias_down), dy, f->inner,
                       nb_parameter_used(f->down), f->rows, f->ffn, f->hidden);
    nb_round_tensor(r->dinner, n, f->dtype);
    if (f->gate) {
        nb_swiglu_backward(r->dgate, r->dup, r->dinner, f->at_gate, f->at_up, n);
        nb_round_tensor(r->dgate, n, f->dtype);
    } else {
        nb_relu_backward(r->dup, r->dinner, f->at_up, n);
    }
    nb_round_tensor(r->dup, n, f->dtype);
    nb_linear_backward(dx, f->up->gradient, gradient_of(f->bias), r->dup, x, nb_parameter_used(f->up), f->rows,
                       f->hidden, f->ffn);
    if (f->gate) {
        nb_linear_backward(NULL, f->gate->gradient, NULL, r->dgate, x, NULL, f->rows, f->hidden, f->ffn);
        nb_matrix_multiply(NB_AS_STORED, dx, r->dgate, nb_parameter_used(f->gate), f->rows, f->hidden, f->ffn, 1);
    }
    nb_round_tensor(dx, f->rows * f->hidden, f->dtype);
}

/* ---- a sublayer: norm, function and residual path in either order ---- */

void nb_sublayer_init(struct nb_sublayer *s, struct nb_model *model, struct nb_place place, struct nb_place norm,
                      int64_t rows, int64_t width) {
    s->model = model;
    s->rows = rows;
    s->width = width;
    s->place = place;
    s->sum = nb_arena_take(&model->kept, rows * width);
    if (model->options.norm.kind != NB_NORM_NONE) s->normed = nb_arena_take(&model->kept, rows * width);
    nb_norm_layer_init(&s->norm, model, norm.text, rows, width);
}

static int64_t size_of(const struct nb_sublayer *s) { return s->rows * s->width; }

static void add_to(float *to, const float *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

static void round_to_dtype(const struct nb_sublayer *s, float *values) {
    nb_round_tensor(values, size_of(s), s->model->options.dtype);
}

static void observe(const struct nb_sublayer *s, enum nb_observed what, const char *part, const float *values) {
    nb_model_observe(s->model, what, s->place.text, part, values, size_of(s));
}

static const float *normalize(struct nb_sublayer *s, const float *x, bool training) {
    return nb_norm_forward(&s->norm, s->normed, x, 0, s->rows, training);
}

static void inside_forward(struct nb_sublayer *s, const float *x, bool training) {
    if (s->attention)
        nb_attention_forward(s->attention, s->sum, x, training);
    else
        nb_feed_forward_forward(s->feed_forward, s->sum, x);
}

/* Overwrites dx. */
static void inside_backward(struct nb_sublayer *s, float *dx, const float *dy, const float *x) {
    if (s->attention)
        nb_attention_backward(s->attention, dx, dy, x);
    else
        nb_feed_forward_backward(s->feed_forward, dx, dy, x);
}

const float *nb_sublayer_forward(struct nb_sublayer *s, const float *x, bool training) {
    const struct nb_train_options *o = &s->model->options;
    const bool pre = o->place == NB_PRE_NORM;
    const float *input = pre ? normalize(s, x, training) : x;
    s->x = x;
    observe(s, NB_ACTIVATION, "input", input);
    inside_forward(s, input, training);
    observe(s, NB_ACTIVATION, "output", s->sum);
    if (o->residual) {
        add_to(s->sum, x, size_of(s));
        round_to_dtype(s, s->sum);
    }
    const float *out = pre ? s->sum : normalize(s, s->sum, training);
    observe(s, NB_ACTIVATION, "stream", out);
    return out;
}

/* Adds the gradient that came past f, or takes only the one that came through it. */
static void join(const struct nb_sublayer *s, float *d, const float *past, const float *through) {
    const size_t bytes = (size_t)size_of(s) * sizeof *d;
    if (!s->model->options.residual) {
        memcpy(d, through, bytes);
        return;
    }
    if (d != past) memcpy(d, past, bytes);
    add_to(d, through, size_of(s));
    round_to_dtype(s, d);
}

static void pre_backward(struct nb_sublayer *s, float *d, float *buffer, float *other_buffer) {
    const float *input = s->norm.choice.kind == NB_NORM_NONE ? s->x : s->normed;
    observe(s, NB_GRADIENT, "output", d);
    inside_backward(s, buffer, d, input);
    observe(s, NB_GRADIENT, "input", buffer);
    join(s, d, d, nb_norm_backward(&s->norm, other_buffer, buffer, s->x, 0, s->rows));
}

static void post_backward(struct nb_sublayer *s, float *d, float *buffer, float *other_buffer) {
    const float *dsum = nb_norm_backward(&s->norm, other_buffer, d, s->sum, 0, s->rows);
    observe(s, NB_GRADIENT, "output", dsum);
    inside_backward(s, buffer, dsum, s->x);
    observe(s, NB_GRADIENT, "input", buffer);
    join(s, d, dsum, buffer);
}

void nb_sublayer_backward(struct nb_sublayer *s, float *d, float *buffer, float *other_buffer) {
    observe(s, NB_GRADIENT, "stream", d);
    if (s->model->options.place == NB_PRE_NORM)
        pre_backward(s, d, buffer, other_buffer);
    else
        post_backward(s, d, buffer, other_buffer);
}
