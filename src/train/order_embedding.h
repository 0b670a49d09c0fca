// SPDX-License-Identifier: Apache-2.0
/* The order embedding (Vendrov et al. 2016) as in table 8 of Zhang & Sennrich 2019: a gated recurrent unit reads a caption, a matrix takes
 * the image's features, and both are compared by order violation (order_loss.h). Captions are words of the text; an image's features are
 * made of its caption's words (a fixed random vector for each, summed, without what is negative, as behind a ReLU), so that there is
 * something to learn.
 *
 * Observers are told of "caption.*" (x_gates, x_candidate, h_gates, h_candidate: product and result), "caption.states" and "image"; of
 * gradients at the same places. */
#ifndef NB_TRAIN_ORDER_EMBEDDING_H
#define NB_TRAIN_ORDER_EMBEDDING_H

#include "src/train/workload.h"

extern const struct nb_workload nb_workload_order_embedding, nb_workload_tiny_order_embedding;

#endif
