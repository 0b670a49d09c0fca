// SPDX-License-Identifier: Apache-2.0
/* A convolution with what follows it: norm, gain and bias of each channel, leaky ReLU, pooling where there is one. */
#ifndef NB_TRAIN_CONV_BLOCK_H
#define NB_TRAIN_CONV_BLOCK_H

#include "src/train/arena.h"
#include "src/train/convolution.h"
#include "src/train/norm_layer.h"
#include "src/train/workload.h"

struct nb_conv_block {
    char place[16]; /* "layer3" */
    struct nb_convolution c;
    bool pools;
    struct nb_parameter *w, *gain, *bias;
    struct nb_norm_layer norm;
    float *before, *normed, *out, *pooled; /* kept; normed is before without a norm */
    float *turned;                         /* BatchNorm: before with channels as columns; kept */
    int32_t *from;                         /* of pooling */
    const float *x;                        /* of the last forward; borrowed */
};
struct nb_conv_arenas { /* shared by the blocks of a model: each as large as the largest needs */
    float *columns, *d, *other, *turned, *turned_back;
};

/* Adds up to five parameters. -1 after nb_error; release in either case. */
int nb_conv_block_init(struct nb_conv_block *b, struct nb_model *model, int index, const struct nb_convolution *c,
                       bool pools, struct nb_arena *kept);
int64_t nb_conv_block_outputs(const struct nb_conv_block *b); /* before pooling */
const float *nb_conv_block_forward(struct nb_conv_block *b, const struct nb_model *model, const float *x, bool training,
                                   const struct nb_conv_arenas *arenas);
/* dx may be null. dy is written over. */
void nb_conv_block_backward(struct nb_conv_block *b, const struct nb_model *model, float *dx, float *dy,
                            const struct nb_conv_arenas *arenas);
void nb_conv_block_release(struct nb_conv_block *b);

#endif
