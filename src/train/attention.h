// SPDX-License-Identifier: Apache-2.0
/* Attention of several heads, several query heads to one of keys and values (Ainslie et al. 2023): softmax(q k^T / sqrt(width)) v, then a
 * product with wo. Queries and keys may be normalized head by head, then turned (rope.h). */
#ifndef NB_TRAIN_ATTENTION_H
#define NB_TRAIN_ATTENTION_H

#include "src/train/arena.h"
#include "src/train/norm_layer.h"
#include "src/train/rope.h"
#include "src/train/transformer_shape.h"
#include "src/train/workload.h"

/* Room that all layers of a model share in backward. */
struct nb_attention_arena {
    float *dq, *dk, *dv, *dmixed, *dscores, *normed; /* normed: a gradient on its way through a QK-norm */
};

struct nb_attention {
    int64_t batch, sequence, heads, kv_heads, width, hidden;
    bool causal;
    enum nb_dtype dtype;
    struct nb_parameter *wq, *wk, *wv, *wo;
    bool qk_norm;
    struct nb_norm_layer q_norm, k_norm;
    const struct nb_rope *rope;         /* null: no rotation */
    struct nb_attention_arena arena;    /* borrowed */
    float *q_before, *k_before;         /* QK-norm: its inputs */
    float *q, *k, *v, *weights, *mixed; /* kept; weights: batch x heads x sequence x sequence */
};

void nb_attention_arena_take(struct nb_attention_arena *out, struct nb_arena *arena,
                             const struct nb_transformer_shape *shape);
/* Parameters are "NAME.wq" and so on. -1 after nb_error. */
int nb_attention_init(struct nb_attention *a, const char *name, struct nb_model *model,
                      const struct nb_transformer_shape *shape, struct nb_arena *kept,
                      const struct nb_attention_arena *arena, const struct nb_rope *rope);
void nb_attention_forward(struct nb_attention *a, float *y, const float *x, bool training);
/* Overwrites dx, adds to the parameters' gradients. */
void nb_attention_backward(struct nb_attention *a, float *dx, const float *dy, const float *x);
void nb_attention_release(struct nb_attention *a);

#endif
