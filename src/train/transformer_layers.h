// SPDX-License-Identifier: Apache-2.0
/* What a transformer is made of: its sizes, attention, the feed-forward part, and the sublayer that wraps either. */
#ifndef NB_TRAIN_TRANSFORMER_LAYERS_H
#define NB_TRAIN_TRANSFORMER_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/train/layers.h"
#include "src/train/norm_layer.h"
#include "src/train/options.h"
#include "src/train/tensor.h"
#include "src/train/workload.h"

/* The sizes of a transformer and what its published configuration says besides. */
struct nb_transformer_shape {
    int hidden, layers, heads, kv_heads, ffn, vocabulary; /* a head is hidden / heads wide */
    int batch, sequence;                                  /* where options say nothing */
    bool swiglu;                                          /* three matrices without bias; else two with, and ReLU */
    bool qk_norm;                                         /* queries and keys are normalized head by head */
    double rope_theta; /* 0: sinusoids are added to embeddings times sqrt(hidden) instead */
    double eps;
    double
        deviation; /* of the matrices' first values; 0: Glorot & Bengio 2010, 2 / (in + out), embeddings 1 / hidden */
    double learning_rate, beta2, adam_eps, decay;
};

/* Attention of several heads, several query heads to one of keys and values (Ainslie et al. 2023): softmax(q k^T / sqrt(width)) v, then a
 * product with wo. Queries and keys may be normalized head by head, then turned (layers.h). */

/* Scratch arrays that all layers of a model share in their backward passes: zero at first, made by the first layer. */
struct nb_attention_buffers {
    float *dq, *dk, *dv, *dmixed, *dscores, *normed; /* normed: a gradient on its way through a QK-norm */
};

struct nb_attention {
    int64_t batch, sequence, heads, kv_heads, width, hidden;
    bool causal;
    enum nb_dtype dtype;
    struct nb_parameter *wq, *wk, *wv, *wo;
    bool qk_norm;
    struct nb_norm_layer q_norm, k_norm;
    const struct nb_rope *rope;          /* null: no rotation */
    struct nb_attention_buffers buffers; /* shared */
    float *q_before, *k_before;          /* QK-norm: its inputs */
    float *q, *k, *v, *weights, *mixed;  /* kept; weights: batch x heads x sequence x sequence */
};

/* Parameters are "NAME.wq" and so on. */
void nb_attention_init(struct nb_attention *a, const char *name, struct nb_model *model,
                       const struct nb_transformer_shape *shape, struct nb_attention_buffers *buffers,
                       const struct nb_rope *rope);
void nb_attention_forward(struct nb_attention *a, float *y, const float *x, bool training);
/* Overwrites dx, adds to the parameters' gradients. */
void nb_attention_backward(struct nb_attention *a, float *dx, const float *dy, const float *x);

/* The feed-forward sublayer: w_down (silu(w_gate x) * (w_up x)), or w_down relu(w_up x + b) + c. */

/* Likewise shared scratch arrays, rows x ffn each. */
struct nb_feed_forward_buffers {
    float *dgate, *dup, *dinner;
};

struct nb_feed_forward {
    int64_t rows, hidden, ffn;
    enum nb_dtype dtype;
    struct nb_parameter *gate, *up, *down, *bias, *bias_down; /* gate null: ReLU; biases with ReLU alone */
    struct nb_feed_forward_buffers buffers;                   /* shared */
    float *at_gate, *at_up, *inner;                           /* kept: products, and what goes into the last one */
};

void nb_feed_forward_init(struct nb_feed_forward *f, const char *name, struct nb_model *model,
                          const struct nb_transformer_shape *shape, struct nb_feed_forward_buffers *buffers);
void nb_feed_forward_forward(struct nb_feed_forward *f, float *y, const float *x);
/* Overwrites dx, adds to the parameters' gradients. */
void nb_feed_forward_backward(struct nb_feed_forward *f, float *dx, const float *dy, const float *x);

/* A sublayer of a transformer with its normalization and the path past it:
 *   pre-norm (Xiong et al. 2020)      out = x + f(norm(x))
 *   post-norm (Vaswani et al. 2017)   out = norm(x + f(x))
 * without "x +" where the model has no residual paths. */

struct nb_sublayer {
    struct nb_attention *attention; /* what is wrapped, borrowed: this, or if null */
    struct nb_feed_forward *feed_forward;
    struct nb_place place; /* "layer3.attention", for observers */
    const struct nb_model *model;
    struct nb_norm_layer norm;
    int64_t rows, width;
    float *normed, *sum; /* kept: the norm's output; f's output, with x where there is a residual path */
    const float *x;      /* of the last forward; borrowed */
};

/* place: "layer3.attention"; norm: "layer3.input_layernorm". attention and feed_forward are set already. */
void nb_sublayer_init(struct nb_sublayer *s, struct nb_model *model, struct nb_place place, struct nb_place norm,
                      int64_t rows, int64_t width);
/* Returns the output; x must stay until backward. Observers see "PLACE.input" (what f works on), "PLACE.output" (what f makes of it)
 * and "PLACE.stream" (the sublayer's output). */
const float *nb_sublayer_forward(struct nb_sublayer *s, const float *x, bool training);
/* d: the gradient by the output, in whose place that by x comes. Two buffers of rows x width. */
void nb_sublayer_backward(struct nb_sublayer *s, float *d, float *buffer, float *other_buffer);

#endif
