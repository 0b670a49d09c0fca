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

/* The functions of a workload whose `own` is a struct nb_transformer_shape. */
/* Fills what options leave open, and refuses what cannot be: null or the reason. */
const char *nb_transformer_complete(const void *shape, struct nb_train_options *options);
int nb_transformer_create(struct nb_model *model);
double nb_transformer_forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training);
void nb_transformer_backward(struct nb_model *model, double scale);
void nb_transformer_release(struct nb_model *model);

/* Mean loss of batch x sequence tokens that are the caller's; each below the vocabulary, targets too. */
double nb_transformer_loss(struct nb_model *model, const int32_t *tokens, const int32_t *targets, bool training);

#endif
