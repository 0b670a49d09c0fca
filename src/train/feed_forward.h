// SPDX-License-Identifier: Apache-2.0
/* The feed-forward sublayer: w_down (silu(w_gate x) * (w_up x)), or w_down relu(w_up x + b) + c. */
#ifndef NB_TRAIN_FEED_FORWARD_H
#define NB_TRAIN_FEED_FORWARD_H

#include "src/train/arena.h"
#include "src/train/transformer_shape.h"
#include "src/train/workload.h"

/* Room that all layers of a model share in backward: rows x ffn each. */
struct nb_feed_forward_arena {
    float *dgate, *dup, *dinner;
};

struct nb_feed_forward {
    int64_t rows, hidden, ffn;
    enum nb_dtype dtype;
    struct nb_parameter *gate, *up, *down, *bias, *bias_down; /* gate null: ReLU; biases with ReLU alone */
    struct nb_feed_forward_arena arena;                       /* borrowed */
    float *at_gate, *at_up, *inner;                           /* kept: products, and what goes into the last one */
};

void nb_feed_forward_arena_take(struct nb_feed_forward_arena *out, struct nb_arena *arena,
                                const struct nb_transformer_shape *shape);
void nb_feed_forward_init(struct nb_feed_forward *f, const char *name, struct nb_model *model,
                          const struct nb_transformer_shape *shape, struct nb_arena *kept,
                          const struct nb_feed_forward_arena *arena);
void nb_feed_forward_forward(struct nb_feed_forward *f, float *y, const float *x);
/* Overwrites dx, adds to the parameters' gradients. */
void nb_feed_forward_backward(struct nb_feed_forward *f, float *dx, const float *dy, const float *x);

#endif
