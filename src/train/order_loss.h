// SPDX-License-Identifier: Apache-2.0
/* The loss of order embeddings (Vendrov et al. 2016, equations 2 and 4) over a batch of pairs of a caption and its image, their vectors
 * made non-negative and of length 1: a caption lies above its image, E(s, m) = |max(0, s - m)|^2, by a margin more than above the
 * other images, and than other captions above its image:
 *   loss = sum_ij max(0, margin - E(s_i, m_j) + E(s_i, m_i)) + max(0, margin - E(s_i, m_j) + E(s_j, m_j)),  i != j */
#ifndef NB_TRAIN_ORDER_LOSS_H
#define NB_TRAIN_ORDER_LOSS_H

#include <stdint.h>

#include "src/train/arena.h"

struct nb_order_loss {
    int64_t n, width; /* pairs, width of a vector */
    double margin;
    float *captions, *images; /* |.| / length */
    float *caption_length, *image_length;
    float *violations; /* E, n x n: captions x images */
    float *pull;       /* gradient of the loss by E */
    float *dcaptions, *dimages;
};

void nb_order_loss_init(struct nb_order_loss *l, struct nb_arena *kept, struct nb_arena *passing, int64_t n,
                        int64_t width, double margin);
/* captions and images as the encoders say them, n x width. The sum above, for a pair of the batch: divided by n. */
double nb_order_loss_forward(struct nb_order_loss *l, const float *captions, const float *images);
/* scale times the gradients; overwrites both. */
void nb_order_loss_backward(struct nb_order_loss *l, float *dcaptions, float *dimages, const float *captions,
                            const float *images, double scale);

#endif
