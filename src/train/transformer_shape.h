// SPDX-License-Identifier: Apache-2.0
/* The sizes of a transformer and what its published configuration says besides. */
#ifndef NB_TRAIN_TRANSFORMER_SHAPE_H
#define NB_TRAIN_TRANSFORMER_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/train/options.h"

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

/* Fills what options leave open, and refuses what cannot be: null or the reason. */
const char *nb_transformer_complete(const void *shape, struct nb_train_options *options);
/* The sizes that complete options ask for: layers, batch and sequence theirs, and where hidden is another, the feed-forward width in
 * proportion (a multiple of 8). */
struct nb_transformer_shape nb_transformer_resolve(const struct nb_transformer_shape *shape,
                                                   const struct nb_train_options *options);
/* Of a step: products and attention, 2 for a multiply and add, backward counted as two forwards. */
double nb_transformer_flops(const void *shape, const struct nb_train_options *options);

#endif
