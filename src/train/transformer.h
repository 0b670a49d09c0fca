// SPDX-License-Identifier: Apache-2.0
/* A language model of transformer layers (attention and feed-forward sublayers) between an embedding and a head that share their matrix;
 * with pre-norm a norm stands before the head. Bytes of text are tokens, the byte behind each its target. Without the causal mask a
 * position sees its own target: such a run is about time, not about learning.
 *
 * Observers are given "embedding", "layerN.attention.*", "layerN.feed_forward.*" (transformer_layers.h), "final" (the head's input) and "logits"; of
 * gradients at the same places. */
#ifndef NB_TRAIN_TRANSFORMER_H
#define NB_TRAIN_TRANSFORMER_H

#include "src/train/transformer_layers.h"
#include "src/train/workload.h"

/* Of workloads whose `own` is a struct nb_transformer_shape. */
extern const struct nb_model_family nb_transformer_family;

/* Mean loss of batch x sequence tokens that are the caller's; each below the vocabulary, targets too. */
double nb_transformer_loss(struct nb_model *model, const int32_t *tokens, const int32_t *targets, bool training);

#endif
