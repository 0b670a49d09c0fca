// SPDX-License-Identifier: Apache-2.0
/* A language model of transformer layers (attention and feed-forward sublayers) between an embedding and a head that share their matrix;
 * or an encoder and a decoder, post-norm: the one reads a piece of text, the other predicts the piece behind it.
 * with pre-norm a norm stands before the head. Bytes of text are tokens, the byte behind each its target. Without the causal mask a
 * position sees its own target: such a run is about time, not about learning.
 *
 * Observers are given "embedding", "layerN.attention.*", "layerN.feed_forward.*" (of a decoder "decoderN.*", with "cross" between them),
 * "final" (the head's input) and "logits"; of gradients at the same places. */
#ifndef NB_TRAIN_TRANSFORMER_H
#define NB_TRAIN_TRANSFORMER_H

#include <stdbool.h>
#include <stdint.h>

#include "src/train/workload.h"

/* The sizes of a transformer and what its published configuration says besides. */
struct nb_transformer_shape {
    int hidden, layers, heads, kv_heads, ffn, vocabulary; /* a head is hidden / heads wide */
    int batch, sequence;                                  /* where options say nothing */
    bool swiglu;                                          /* three matrices without bias; else two with, and ReLU */
    bool decoder;      /* as many layers again, which also attend to what the others made of the text before */
    bool qk_norm;      /* queries and keys are normalized head by head */
    double rope_theta; /* 0: sinusoids are added to embeddings times sqrt(hidden) instead */
    double eps;
    double
        deviation; /* of the matrices' first values; 0: Glorot & Bengio 2010, 2 / (in + out), embeddings 1 / hidden */
    double learning_rate, beta2, adam_eps, decay;
};

/* Of workloads whose `own` is a struct nb_transformer_shape. */
extern const struct nb_model_family nb_transformer_family;

/* Mean loss of batch x sequence tokens that are the caller's; each below the vocabulary, targets too. */
double nb_transformer_loss(struct nb_model *model, const int32_t *tokens, const int32_t *targets, bool training);

#endif
