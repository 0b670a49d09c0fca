// SPDX-License-Identifier: Apache-2.0
/* The transformer: its sizes, and from tokens to loss and back. */
#include "src/train/transformer.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/core/random.h"
#include "src/train/data.h"
#include "src/train/layers.h"
#include "src/train/norm_layer.h"
#include "src/train/tensor.h"
#include "src/train/workload.h"

/* ---- attention, feed-forward, sublayer ---- */

/* Attention of several heads, several query heads to one of keys and values (Ainslie et al. 2023): softmax(q k^T / sqrt(width)) v, then a
 * product with wo. Queries and keys may be normalized head by head, then turned (layers.h). */

/* Scratch arrays that all layers of a model share in their backward passes: zero at first, made by the first layer. */
struct attention_buffers {
    float *dq, *dk, *dv, *dmixed, *dscores, *normed; /* normed: a gradient on its way through a QK-norm */
};

struct attention {
    int64_t batch, sequence, heads, kv_heads, width, hidden;
    bool causal;
    enum nb_dtype dtype;
    struct nb_parameter *wq, *wk, *wv, *wo;
    bool qk_norm;
    struct nb_norm_layer q_norm, k_norm;
    const struct nb_rope *rope; /* null: no rotation */
    const float *memory;        /* keys and values are made of this, in place of the queries' input; null: of that */
    float *dmemory;             /* the gradient by it is added here */
    struct attention_buffers buffers;   /* shared */
    float *q_before, *k_before;         /* QK-norm: its inputs */
    float *q, *k, *v, *weights, *mixed; /* kept; weights: batch x heads x sequence x sequence */
};

/* The feed-forward sublayer: w_down (silu(w_gate x) * (w_up x)), or w_down relu(w_up x + b) + c. */

/* Likewise shared scratch arrays, rows x ffn each. */
struct feed_forward_buffers {
    float *dgate, *dup, *dinner;
};

struct feed_forward {
    int64_t rows, hidden, ffn;
    enum nb_dtype dtype;
    struct nb_parameter *gate, *up, *down, *bias, *bias_down; /* gate null: ReLU; biases with ReLU alone */
    struct feed_forward_buffers buffers;                      /* shared */
    float *at_gate, *at_up, *inner;                           /* kept: products, and what goes into the last one */
};

/* A sublayer of a transformer with its normalization and the path past it:
 *   pre-norm (Xiong et al. 2020)      out = x + f(norm(x))
 *   post-norm (Vaswani et al. 2017)   out = norm(x + f(x))
 * without "x +" where the model has no residual paths. */

struct sublayer {
    struct attention *attention; /* what is wrapped, borrowed: this, or if null */
    struct feed_forward *feed_forward;
    struct nb_place place; /* "layer3.attention", for observers */
    const struct nb_model *model;
    struct nb_norm_layer norm;
    int64_t rows, width;
    float *normed, *sum; /* kept: the norm's output; f's output, with x where there is a residual path */
    const float *x;      /* of the last forward; borrowed */
};

static int64_t rows_of(const struct attention *a) { return a->batch * a->sequence; }
static int64_t q_width(const struct attention *a) { return a->heads * a->width; }
static int64_t kv_width(const struct attention *a) { return a->kv_heads * a->width; }

/* ---- set-up ---- */

static void make_attention_buffers(struct attention_buffers *out, struct nb_model *model,
                                   const struct nb_transformer_shape *shape) {
    const int64_t rows = (int64_t)shape->batch * shape->sequence;
    const int64_t q = rows * shape->hidden, kv = q / shape->heads * shape->kv_heads;
    *out = (struct attention_buffers){
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

static void init_norms(struct attention *a, const char *name, struct nb_model *model) {
    nb_norm_layer_init(&a->q_norm, model, nb_place_of(name, "q_norm").text, rows_of(a) * a->heads, a->width);
    nb_norm_layer_init(&a->k_norm, model, nb_place_of(name, "k_norm").text, rows_of(a) * a->kv_heads, a->width);
    a->q_before = nb_arena_take(&model->kept, rows_of(a) * q_width(a));
    a->k_before = nb_arena_take(&model->kept, rows_of(a) * kv_width(a));
}

/* Parameters are "NAME.wq" and so on. */
static void attention_init(struct attention *a, const char *name, struct nb_model *model,
                           const struct nb_transformer_shape *shape, struct attention_buffers *buffers,
                           const struct nb_rope *rope) {
    if (!buffers->dq) make_attention_buffers(buffers, model, shape);
    *a = (struct attention){.batch = shape->batch,
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
static struct head head_at(const struct attention *a, int64_t b, int64_t h) {
    const int64_t kv = h / (a->heads / a->kv_heads);
    return (struct head){b * a->sequence * q_width(a) + h * a->width, b * a->sequence * kv_width(a) + kv * a->width,
                         (b * a->heads + h) * a->sequence * a->sequence};
}

/* Products with an n x n matrix of weights or scores, n the sequence: w = left right^T, and y = w right or w^T right. */
static void multiply_heads(const struct attention *a, float *w, const float *left, int64_t left_stride,
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
static void apply_weights(const struct attention *a, float *y, int64_t y_stride, const float *w, bool transposed,
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

static float score_scale(const struct attention *a) { return (float)(1 / sqrt((double)a->width)); }

static void head_forward(struct attention *a, struct head at) {
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

static void head_backward(struct attention *a, struct head at) {
    const int64_t n = a->sequence, qs = q_width(a), kvs = kv_width(a);
    const struct attention_buffers *r = &a->buffers;
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
static void project(struct attention *a, float *y, float *before, struct nb_norm_layer *norm,
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

static void attention_forward(struct attention *a, float *y, const float *x, bool training) {
    const int64_t rows = rows_of(a);
    const float *const from = a->memory ? a->memory : x;
    project(a, a->q, a->q_before, &a->q_norm, a->wq, x, a->heads, training);
    project(a, a->k, a->k_before, &a->k_norm, a->wk, from, a->kv_heads, training);
    nb_linear_forward(a->v, from, nb_parameter_used(a->wv), NULL, rows, a->hidden, kv_width(a));
    nb_round_tensor(a->v, rows * kv_width(a), a->dtype);
    nb_op(a->causal ? 5 : 4); /* of all heads at once: scores, scale, mask, softmax, mixture */
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++) head_forward(a, head_at(a, b, h));
    nb_round_tensor(a->mixed, rows * q_width(a), a->dtype);
    nb_linear_forward(y, a->mixed, nb_parameter_used(a->wo), NULL, rows, q_width(a), a->hidden);
    nb_round_tensor(y, rows * a->hidden, a->dtype);
}

/* Back through rotation, norm and product; adds to dx. */
static void project_back(struct attention *a, float *dx, float *d, const float *before, struct nb_norm_layer *norm,
                         struct nb_parameter *w, const float *x, int64_t heads) {
    const int64_t rows = rows_of(a), width = heads * a->width;
    nb_round_tensor(d, rows * width, a->dtype);
    if (a->rope) {
        nb_rope_backward(a->rope, d, rows, heads);
        nb_round_tensor(d, rows * width, a->dtype);
    }
    const float *dproduct = nb_norm_backward(norm, a->buffers.normed, d, before, 0, rows * heads);
    nb_linear_backward(NULL, w->gradient, NULL, dproduct, x, NULL, rows, a->hidden, width);
    nb_op(2); /* and the sum of what came by another way */
    nb_matrix_multiply(NB_AS_STORED, dx, dproduct, nb_parameter_used(w), rows, a->hidden, width, 1);
}

/* Overwrites dx, adds to the parameters' gradients. */
static void attention_backward(struct attention *a, float *dx, const float *dy, const float *x) {
    const int64_t rows = rows_of(a), kv = rows * kv_width(a);
    const struct attention_buffers *r = &a->buffers;
    nb_linear_backward(r->dmixed, a->wo->gradient, NULL, dy, a->mixed, nb_parameter_used(a->wo), rows, q_width(a),
                       a->hidden);
    nb_round_tensor(r->dmixed, rows * q_width(a), a->dtype);
    memset(r->dk, 0, (size_t)kv * sizeof *r->dk); /* heads that share them add up */
    memset(r->dv, 0, (size_t)kv * sizeof *r->dv);
    nb_op(6); /* four products, softmax, scale */
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++) head_backward(a, head_at(a, b, h));
    nb_round_tensor(r->dv, kv, a->dtype);
    const float *const from = a->memory ? a->memory : x;
    float *const dfrom = a->memory ? a->dmemory : dx;
    memset(dx, 0, (size_t)(rows * a->hidden) * sizeof *dx);
    nb_linear_backward(NULL, a->wv->gradient, NULL, r->dv, from, NULL, rows, a->hidden, kv_width(a));
    nb_op(1 + (a->memory != NULL));
    nb_matrix_multiply(NB_AS_STORED, dfrom, r->dv, nb_parameter_used(a->wv), rows, a->hidden, kv_width(a), 1);
    project_back(a, dfrom, r->dk, a->k_before, &a->k_norm, a->wk, from, a->kv_heads);
    project_back(a, dx, r->dq, a->q_before, &a->q_norm, a->wq, x, a->heads);
    nb_round_tensor(dx, rows * a->hidden, a->dtype);
}

/* ---- the feed-forward part, gated or not ---- */

static void feed_forward_init(struct feed_forward *f, const char *name, struct nb_model *model,
                              const struct nb_transformer_shape *shape, struct feed_forward_buffers *buffers) {
    const int64_t rows = (int64_t)shape->batch * shape->sequence, n = rows * shape->ffn;
    if (!buffers->dup)
        *buffers = (struct feed_forward_buffers){.dgate = shape->swiglu ? nb_arena_take(&model->passing, n) : NULL,
                                                 .dup = nb_arena_take(&model->passing, n),
                                                 .dinner = nb_arena_take(&model->passing, n)};
    *f = (struct feed_forward){
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

static void feed_forward_forward(struct feed_forward *f, float *y, const float *x) {
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

/* Overwrites dx, adds to the parameters' gradients. */
static void feed_forward_backward(struct feed_forward *f, float *dx, const float *dy, const float *x) {
    const int64_t n = f->rows * f->ffn;
    const struct feed_forward_buffers *r = &f->buffers;
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
        nb_op(2);
        nb_matrix_multiply(NB_AS_STORED, dx, r->dgate, nb_parameter_used(f->gate), f->rows, f->hidden, f->ffn, 1);
    }
    nb_round_tensor(dx, f->rows * f->hidden, f->dtype);
}

/* ---- a sublayer: norm, function and residual path in either order ---- */

/* place: "layer3.attention"; norm: "layer3.input_layernorm". attention and feed_forward are set already. */
static void sublayer_init(struct sublayer *s, struct nb_model *model, struct nb_place place, struct nb_place norm,
                          int64_t rows, int64_t width) {
    s->model = model;
    s->rows = rows;
    s->width = width;
    s->place = place;
    s->sum = nb_arena_take(&model->kept, rows * width);
    if (model->options.norm.kind != NB_NORM_NONE) s->normed = nb_arena_take(&model->kept, rows * width);
    nb_norm_layer_init(&s->norm, model, norm.text, rows, width);
}

static int64_t size_of(const struct sublayer *s) { return s->rows * s->width; }

static void add_to(float *to, const float *from, int64_t n) {
    nb_op(1);
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

static void round_to_dtype(const struct sublayer *s, float *values) {
    nb_round_tensor(values, size_of(s), s->model->options.dtype);
}

static void observe(const struct sublayer *s, enum nb_observed what, const char *part, const float *values) {
    nb_model_observe(s->model, what, s->place.text, part, values, size_of(s));
}

static const float *normalize(struct sublayer *s, const float *x, bool training) {
    return nb_norm_forward(&s->norm, s->normed, x, 0, s->rows, training);
}

static void inside_forward(struct sublayer *s, const float *x, bool training) {
    if (s->attention)
        attention_forward(s->attention, s->sum, x, training);
    else
        feed_forward_forward(s->feed_forward, s->sum, x);
}

/* Overwrites dx. */
static void inside_backward(struct sublayer *s, float *dx, const float *dy, const float *x) {
    if (s->attention)
        attention_backward(s->attention, dx, dy, x);
    else
        feed_forward_backward(s->feed_forward, dx, dy, x);
}

/* Returns the output; x must stay until backward. Observers see "PLACE.input" (what f works on), "PLACE.output" (what f makes of it)
 * and "PLACE.stream" (the sublayer's output). */
static const float *sublayer_forward(struct sublayer *s, const float *x, bool training) {
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
static void join(const struct sublayer *s, float *d, const float *past, const float *through) {
    const size_t bytes = (size_t)size_of(s) * sizeof *d;
    if (!s->model->options.residual) {
        memcpy(d, through, bytes);
        return;
    }
    if (d != past) memcpy(d, past, bytes);
    add_to(d, through, size_of(s));
    round_to_dtype(s, d);
}

static void pre_backward(struct sublayer *s, float *d, float *buffer, float *other_buffer) {
    const float *input = s->norm.choice.kind == NB_NORM_NONE ? s->x : s->normed;
    observe(s, NB_GRADIENT, "output", d);
    inside_backward(s, buffer, d, input);
    observe(s, NB_GRADIENT, "input", buffer);
    join(s, d, d, nb_norm_backward(&s->norm, other_buffer, buffer, s->x, 0, s->rows));
}

static void post_backward(struct sublayer *s, float *d, float *buffer, float *other_buffer) {
    const float *dsum = nb_norm_backward(&s->norm, other_buffer, d, s->sum, 0, s->rows);
    observe(s, NB_GRADIENT, "output", dsum);
    inside_backward(s, buffer, dsum, s->x);
    observe(s, NB_GRADIENT, "input", buffer);
    join(s, d, dsum, buffer);
}

/* d: the gradient by the output, in whose place that by x comes. Two buffers of rows x width. */
static void sublayer_backward(struct sublayer *s, float *d, float *buffer, float *other_buffer) {
    observe(s, NB_GRADIENT, "stream", d);
    if (s->model->options.place == NB_PRE_NORM)
        pre_backward(s, d, buffer, other_buffer);
    else
        post_backward(s, d, buffer, other_buffer);
}

static const double PARTIAL = 0.0625; /* Zhang & Sennrich 2019: 6.25 % of the elements */
enum { LAYERS_MOST = 256, WIDTH_MOST = 16384, BATCH_MOST = 65536, SEQUENCE_MOST = 32768 };

static bool outside(double v, double least, double most) { return v < least || v > most; }

/* A causal mask keeps real tokens from the padding behind them, so that a norm is the only way from one to the other. */
static const char *padding_wrong(const struct nb_transformer_shape *shape, const struct nb_train_options *o) {
    const bool in_sets = o->norm.by_position || o->padding == NB_MASKED;
    if (in_sets && o->norm.kind != NB_NORM_BATCHNORM)
        return "masked and by_position are said of BatchNorm's statistics";
    if (in_sets && shape->qk_norm) return "masked and by_position are of models without QK-norm";
    if (o->padding != NB_NOT_PADDED && !o->causal) return "padded sequences need a causal mask";
    if ((in_sets || o->padding != NB_NOT_PADDED) && o->batch < 2) return "padded sequences need a batch of 2 or more";
    return NULL;
}

static const char *transformer_complete(const void *own, struct nb_train_options *o) {
    const struct nb_transformer_shape *shape = own;
    nb_train_options_fill(o, &(struct nb_train_options){.layers = shape->layers,
                                                        .batch = shape->batch,
                                                        .sequence = shape->sequence,
                                                        .hidden = shape->hidden,
                                                        .learning_rate = shape->learning_rate,
                                                        .norm = {.eps = shape->eps, .partial = PARTIAL}});
    if (shape->decoder && o->place != NB_POST_NORM)
        return "place must be post: its encoder has no norm behind the last layer";
    if (shape->decoder && o->padding != NB_NOT_PADDED) return "padded sequences are of models without a decoder";
    if (outside(o->layers, 1, LAYERS_MOST)) return "layers must be 1 to 256";
    if (outside(o->batch, 1, BATCH_MOST)) return "batch must be 1 to 65536";
    if (outside(o->sequence, 1, SEQUENCE_MOST)) return "sequence must be 1 to 32768";
    if (outside((double)o->batch * o->sequence, 2, 1 << 20)) return "batch times sequence must be 2 to 1048576 tokens";
    if (outside(o->hidden, 1, WIDTH_MOST) || o->hidden % (2 * shape->heads) != 0)
        return "hidden must be at most 16384 and a multiple of twice the heads";
    const char *refused = nb_train_options_refused(o, true);
    return refused ? refused : padding_wrong(shape, o);
}

/* The sizes that complete options give: layers, batch and sequence theirs, and where hidden is another, the feed-forward width in
 * proportion (a multiple of 8); where it is less, the vocabulary too, so that the head keeps its share of a step. Bytes need 256. */
static struct nb_transformer_shape transformer_resolve(const struct nb_transformer_shape *shape,
                                                       const struct nb_train_options *o) {
    struct nb_transformer_shape s = *shape;
    s.hidden = o->hidden;
    s.layers = o->layers;
    s.batch = o->batch;
    s.sequence = o->sequence;
    if (s.hidden != shape->hidden) s.ffn = (int)((int64_t)shape->ffn * s.hidden / shape->hidden + 7) / 8 * 8;
    if (s.hidden < shape->hidden) {
        const int vocabulary = (int)((int64_t)shape->vocabulary * s.hidden / shape->hidden);
        s.vocabulary = vocabulary < 256 ? 256 : vocabulary;
    }
    return s;
}

/* Of a step: products and attention, 2 for a multiply and add, backward counted as two forwards. */
static double transformer_flops(const void *shape, const struct nb_train_options *options) {
    const struct nb_transformer_shape s = transformer_resolve(shape, options);
    const double rows = (double)s.batch * s.sequence, hidden = s.hidden, kv = hidden * s.kv_heads / s.heads;
    const double projections = 2 * hidden * hidden + 2 * hidden * kv;
    const double feed_forward = (s.swiglu ? 3.0 : 2.0) * hidden * s.ffn;
    const double attention = 2 * s.sequence * hidden; /* scores and mixture; masked products are made, too */
    const double layer = projections + feed_forward + attention,
                 decoder = s.decoder ? layer + projections + attention : 0;
    return 3 * 2 * rows * (s.layers * (layer + decoder) + hidden * s.vocabulary);
}

/* ---- the model, from tokens to loss and back ---- */

enum { LENGTH_STREAM = 0x4c454e };

enum { MOST_SUBLAYERS = 3 };
struct layer {
    struct attention attention, cross; /* cross: a decoder's, to the encoder's output */
    struct feed_forward feed_forward;
    struct sublayer sublayers[MOST_SUBLAYERS];
    int n;
};

struct transformer {
    struct nb_transformer_shape shape;
    int64_t rows;
    struct nb_rope rope;
    struct layer *layers;            /* the encoder's or only ones, then the decoder's */
    int n_layers, n_first;           /* first: before the decoder's */
    struct nb_norm_layer final_norm; /* pre-norm alone */
    struct nb_parameter *embedding;
    int32_t *tokens, *targets, *lengths; /* lengths: of the sequences of the batch under way */
    int32_t *sources, *piece;            /* decoder: what the encoder reads; two pieces of text with their targets */
    float *source_embedded, *dmemory;
    struct nb_row_sets sets;                 /* for BatchNorm */
    float *embedded, *final_normed, *logits; /* logits become probabilities, then gradients */
    const float *stream, *final;             /* out of the last layer; what the head sees */
    float *d, *buffer, *other_buffer;
};

/* ---- set-up ---- */

struct shared_buffers { /* of all layers */
    struct attention_buffers attention;
    struct feed_forward_buffers feed_forward;
};

static void init_layer(struct nb_model *model, struct transformer *t, int index, struct shared_buffers *shared) {
    const bool decodes = index >= t->n_first;
    const struct nb_rope *rope = t->shape.rope_theta > 0 ? &t->rope : NULL;
    struct layer *l = &t->layers[index];
    char name[24];
    snprintf(name, sizeof name, decodes ? "decoder%d" : "layer%d", decodes ? index - t->n_first : index);
    const char *const parts[] = {"attention", "cross", "feed_forward"};
    const char *const norms[] = {"input_layernorm", "cross_layernorm", "post_attention_layernorm"};
    attention_init(&l->attention, nb_place_of(name, parts[0]).text, model, &t->shape, &shared->attention, rope);
    if (t->shape.decoder) l->attention.causal = decodes;
    if (decodes) {
        attention_init(&l->cross, nb_place_of(name, parts[1]).text, model, &t->shape, &shared->attention, rope);
        l->cross.causal = false;
    }
    feed_forward_init(&l->feed_forward, nb_place_of(name, parts[2]).text, model, &t->shape, &shared->feed_forward);
    for (int part = 0; part < MOST_SUBLAYERS; part++) {
        if (part == 1 && !decodes) continue;
        struct sublayer *sublayer = &l->sublayers[l->n++];
        sublayer->attention = part == 0 ? &l->attention : part == 1 ? &l->cross : NULL;
        sublayer->feed_forward = part == 2 ? &l->feed_forward : NULL;
        sublayer_init(sublayer, model, nb_place_of(name, parts[part]), nb_place_of(name, norms[part]), t->rows,
                      t->shape.hidden);
    }
}

static void init_layers(struct nb_model *model, struct transformer *t) {
    struct shared_buffers shared = {0};
    t->n_first = t->shape.layers;
    t->n_layers = t->shape.decoder ? 2 * t->shape.layers : t->shape.layers;
    t->layers = nb_arena_take_bytes(&model->passing, (size_t)t->n_layers * sizeof *t->layers);
    for (int i = 0; i < t->n_layers; i++) init_layer(model, t, i, &shared);
}

static void allocate(struct nb_model *model, struct transformer *t) {
    const int64_t n = t->rows * t->shape.hidden;
    t->tokens = nb_arena_take_bytes(&model->passing, (size_t)t->rows * sizeof *t->tokens);
    t->targets = nb_arena_take_bytes(&model->passing, (size_t)t->rows * sizeof *t->targets);
    t->lengths = nb_arena_take_bytes(&model->passing, (size_t)t->shape.batch * sizeof *t->lengths);
    t->embedded = nb_arena_take(&model->kept, n);
    t->logits = nb_arena_take(&model->kept, t->rows * t->shape.vocabulary);
    t->d = nb_arena_take(&model->passing, n);
    t->buffer = nb_arena_take(&model->passing, n);
    t->other_buffer = nb_arena_take(&model->passing, n);
    if (!t->shape.decoder) return;
    t->sources = nb_arena_take_bytes(&model->passing, (size_t)t->rows * sizeof *t->sources);
    t->piece = nb_arena_take_bytes(&model->passing, 4 * (size_t)t->shape.sequence * sizeof *t->piece);
    t->source_embedded = nb_arena_take(&model->kept, n);
    t->dmemory = nb_arena_take(&model->passing, n);
}

static bool has_final_norm(const struct nb_model *model) {
    return model->options.place == NB_PRE_NORM && model->options.norm.kind != NB_NORM_NONE;
}

static void transformer_create(struct nb_model *model) {
    struct transformer *t = nb_arena_take_bytes(&model->passing, sizeof *t);
    model->inside = t;
    t->shape = transformer_resolve(model->workload->own, &model->options);
    t->rows = (int64_t)t->shape.batch * t->shape.sequence;
    allocate(model, t);
    for (int b = 0; b < t->shape.batch; b++) t->lengths[b] = t->shape.sequence;
    t->sets = (struct nb_row_sets){t->shape.batch, t->shape.sequence, t->lengths, model->options.padding == NB_MASKED,
                                   model->options.norm.by_position};
    model->options.norm.sets = &t->sets;
    if (t->shape.rope_theta > 0)
        nb_rope_init(&t->rope, &model->passing, t->shape.sequence, t->shape.hidden / t->shape.heads,
                     t->shape.rope_theta);
    t->embedding = nb_parameter_matrix(&model->parameters, "embedding", "", t->shape.vocabulary, t->shape.hidden,
                                       model->options.seed,
                                       t->shape.deviation > 0 ? t->shape.deviation : 1 / sqrt((double)t->shape.hidden));
    init_layers(model, t);
    if (!has_final_norm(model)) return;
    t->final_normed = nb_arena_take(&model->kept, t->rows * t->shape.hidden);
    nb_norm_layer_init(&t->final_norm, model, "norm", t->rows, t->shape.hidden);
}

/* ---- forward ---- */

static bool has_sinusoids(const struct transformer *t) { return t->shape.rope_theta == 0; }
static float embedding_factor(const struct transformer *t) {
    return has_sinusoids(t) ? sqrtf((float)t->shape.hidden) : 1;
}

static void embed(struct nb_model *model, const struct transformer *t, float *embedded, const int32_t *tokens) {
    const int64_t n = t->rows * t->shape.hidden;
    nb_embedding_forward(embedded, nb_parameter_used(t->embedding), tokens, t->rows, t->shape.hidden,
                         embedding_factor(t));
    if (has_sinusoids(t)) nb_positions_add(embedded, t->rows, t->shape.sequence, t->shape.hidden);
    nb_round_tensor(embedded, n, model->options.dtype);
    nb_model_observe(model, NB_ACTIVATION, "embedding", "", embedded, n);
}

static double head_loss(struct nb_model *model, struct transformer *t, bool training) {
    const int64_t n = t->rows * t->shape.hidden, n_logits = t->rows * t->shape.vocabulary;
    t->final = nb_norm_forward(&t->final_norm, t->final_normed, t->stream, 0, t->rows, training);
    nb_model_observe(model, NB_ACTIVATION, "final", "", t->final, n);
    nb_linear_forward(t->logits, t->final, nb_parameter_used(t->embedding), NULL, t->rows, t->shape.hidden,
                      t->shape.vocabulary);
    nb_round_tensor(t->logits, n_logits, model->options.dtype);
    nb_model_observe(model, NB_ACTIVATION, "logits", "", t->logits, n_logits);
    return nb_cross_entropy_forward(t->logits, t->logits, t->targets, t->rows, t->shape.vocabulary);
}

static const float *run_layers(struct transformer *t, int first, int end, const float *stream, bool training) {
    for (int i = first; i < end; i++)
        for (int part = 0; part < t->layers[i].n; part++)
            stream = sublayer_forward(&t->layers[i].sublayers[part], stream, training);
    return stream;
}

static double forward_loss(struct nb_model *model, bool training) {
    struct transformer *t = model->inside;
    if (t->shape.decoder) {
        embed(model, t, t->source_embedded, t->sources);
        const float *memory = run_layers(t, 0, t->n_first, t->source_embedded, training);
        for (int i = t->n_first; i < t->n_layers; i++) {
            t->layers[i].cross.memory = memory;
            t->layers[i].cross.dmemory = t->dmemory;
        }
    }
    embed(model, t, t->embedded, t->tokens);
    t->stream = run_layers(t, t->shape.decoder ? t->n_first : 0, t->n_layers, t->embedded, training);
    return head_loss(model, t, training);
}

/* From a quarter of the sequence to all of it; two are whole, so that every position has statistics. The same for every arm. */
static int32_t draw_length(int64_t sequence, int64_t number, int64_t in_batch) {
    const int64_t least = sequence < 4 ? 1 : sequence / 4;
    if (in_batch < 2) return (int32_t)sequence;
    return (int32_t)(least + (int64_t)(nb_random_bits(nb_random_stream(0, LENGTH_STREAM), (uint64_t)number) %
                                       (uint64_t)(sequence - least + 1)));
}

/* Padding is byte 0, and what comes behind it no target. */
static void pad(struct transformer *t, int64_t in_batch, int32_t length) {
    const int64_t sequence = t->shape.sequence, from = in_batch * sequence;
    t->lengths[in_batch] = length;
    for (int64_t i = length; i < sequence; i++) {
        t->tokens[from + i] = 0;
        t->targets[from + i] = -1;
    }
}

/* A piece for the encoder, and the one behind it. */
static void read_pieces(struct transformer *t, const struct nb_text *text, int64_t number, int64_t in_batch) {
    const int64_t length = t->shape.sequence, at = in_batch * length;
    const size_t bytes = (size_t)length * sizeof *t->piece;
    nb_text_sequence(text, (uint64_t)number, 2 * length, t->piece, t->piece + 2 * length);
    memcpy(t->sources + at, t->piece, bytes);
    memcpy(t->tokens + at, t->piece + length, bytes);
    memcpy(t->targets + at, t->piece + 3 * length, bytes);
}

static double transformer_forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training) {
    struct transformer *t = model->inside;
    const int64_t length = t->shape.sequence;
    for (int64_t b = 0; b < t->shape.batch; b++) {
        const int64_t number = batch * t->shape.batch + b;
        if (t->shape.decoder)
            read_pieces(t, text, number, b);
        else
            nb_text_sequence(text, (uint64_t)number, length, t->tokens + b * length, t->targets + b * length);
        if (model->options.padding != NB_NOT_PADDED) pad(t, b, draw_length(length, number, b));
    }
    return forward_loss(model, training);
}

double nb_transformer_loss(struct nb_model *model, const int32_t *tokens, const int32_t *targets, bool training) {
    struct transformer *t = model->inside;
    memcpy(t->tokens, tokens, (size_t)t->rows * sizeof *tokens);
    memcpy(t->targets, targets, (size_t)t->rows * sizeof *targets);
    if (t->shape.decoder) memcpy(t->sources, tokens, (size_t)t->rows * sizeof *tokens);
    return forward_loss(model, training);
}

/* ---- backward ---- */

static void output_backward(struct nb_model *model, struct transformer *t, double scale) {
    const int64_t n = t->rows * t->shape.hidden, n_logits = t->rows * t->shape.vocabulary;
    const enum nb_dtype dtype = model->options.dtype;
    nb_cross_entropy_backward(t->logits, t->logits, t->targets, t->rows, t->shape.vocabulary, scale);
    nb_round_tensor(t->logits, n_logits, dtype);
    nb_model_observe(model, NB_GRADIENT, "logits", "", t->logits, n_logits);
    float *dfinal = has_final_norm(model) ? t->buffer : t->d;
    nb_linear_backward(dfinal, t->embedding->gradient, NULL, t->logits, t->final, nb_parameter_used(t->embedding),
                       t->rows, t->shape.hidden, t->shape.vocabulary);
    nb_round_tensor(dfinal, n, dtype);
    nb_model_observe(model, NB_GRADIENT, "final", "", dfinal, n);
    nb_norm_backward(&t->final_norm, t->d, dfinal, t->stream, 0, t->rows);
}

/* d: the gradient by the last one's output, in whose place that by the embedded tokens comes. */
static void layers_backward(struct nb_model *model, struct transformer *t, int first, int end, const int32_t *tokens) {
    for (int i = end - 1; i >= first; i--)
        for (int part = t->layers[i].n - 1; part >= 0; part--)
            sublayer_backward(&t->layers[i].sublayers[part], t->d, t->buffer, t->other_buffer);
    nb_model_observe(model, NB_GRADIENT, "embedding", "", t->d, t->rows * t->shape.hidden);
    nb_embedding_backward(t->embedding->gradient, t->d, tokens, t->rows, t->shape.hidden, embedding_factor(t));
}

static void transformer_backward(struct nb_model *model, double scale) {
    struct transformer *t = model->inside;
    const size_t bytes = (size_t)(t->rows * t->shape.hidden) * sizeof *t->d;
    if (t->shape.decoder) memset(t->dmemory, 0, bytes);
    output_backward(model, t, scale);
    layers_backward(model, t, t->shape.decoder ? t->n_first : 0, t->n_layers, t->tokens);
    if (!t->shape.decoder) return;
    memcpy(t->d, t->dmemory, bytes);
    nb_round_tensor(t->d, t->rows * t->shape.hidden, model->options.dtype);
    layers_backward(model, t, 0, t->n_first, t->sources);
}

static struct nb_optimizer transformer_optimizer(const void *own, const struct nb_train_options *o) {
    const struct nb_transformer_shape *s = own;
    return (struct nb_optimizer){.kind = NB_ADAMW,
                                 .learning_rate = o->learning_rate,
                                 .beta1 = 0.9,
                                 .beta2 = s->beta2,
                                 .eps = s->adam_eps,
                                 .decay = s->decay};
}

const struct nb_model_family nb_transformer_family = {.complete = transformer_complete,
                                                      .create = transformer_create,
                                                      .forward = transformer_forward,
                                                      .backward = transformer_backward,
                                                      .optimizer = transformer_optimizer,
                                                      .flops = transformer_flops};
