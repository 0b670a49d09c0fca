// SPDX-License-Identifier: Apache-2.0
/* Layers without parameters of their own (embedding, positions, the two directions of a recurrent reader) and losses. */
#ifndef NB_TRAIN_LAYERS_H
#define NB_TRAIN_LAYERS_H

#include <stdint.h>

#include "src/train/tensor.h"

/* Rows of a table by token, and the sinusoids of Vaswani et al. 2017 that mark positions.
 * y: rows x width, factor times the rows of the table. */
void nb_embedding_forward(float *y, const float *table, const int32_t *tokens, int64_t rows, int64_t width,
                          float factor);
/* Adds to dtable. */
void nb_embedding_backward(float *dtable, const float *dy, const int32_t *tokens, int64_t rows, int64_t width,
                           float factor);
/* Adds sin(t / 10000^(2i/width)) to the first of each pair of columns, cos to the second; t begins anew every `sequence` rows. */
void nb_positions_add(float *y, int64_t rows, int64_t sequence, int64_t width);

/* Rotary positions (Su et al. 2021) in the order of Llama and MiniMind: element i of a head and element i + width / 2 turn together by
 * position / theta^(2i / width). */

struct nb_rope {
    int64_t positions, half; /* half the width of a head */
    float *cosine, *sine;    /* positions x half */
};

void nb_rope_init(struct nb_rope *r, struct nb_arena *arena, int64_t positions, int64_t head_width, double theta);
/* x: rows x heads x head width, in place; row r stands at position r mod positions. */
void nb_rope_forward(const struct nb_rope *r, float *x, int64_t rows, int64_t heads);
/* Its transpose, which is its inverse. */
void nb_rope_backward(const struct nb_rope *r, float *dx, int64_t rows, int64_t heads);

/* Two directions of time side by side: each row of y is a row of left, then one of right. */

/* width: of a half */
void nb_halves_join(float *y, const float *left, const float *right, int64_t rows, int64_t width);
void nb_halves_split(float *left, float *right, const float *y, int64_t rows, int64_t width);

/* Softmax and cross-entropy, in natural logarithms; the mean over the rows that have a target. */

/* probabilities: rows x classes, may be the logits' place. A row whose target is below 0 does not count (padding); no row that counts:
 * 0. */
double nb_cross_entropy_forward(float *probabilities, const float *logits, const int32_t *targets, int64_t rows,
                                int64_t classes);
/* scale times the gradient of that mean by the logits: (p - onehot) * scale / rows that count. dlogits may be the place of p. */
void nb_cross_entropy_backward(float *dlogits, const float *probabilities, const int32_t *targets, int64_t rows,
                               int64_t classes, double scale);

#endif
