// SPDX-License-Identifier: Apache-2.0
/* Rows of a table by token, and the sinusoids of Vaswani et al. 2017 that tell positions apart. */
#ifndef NB_TRAIN_EMBEDDING_H
#define NB_TRAIN_EMBEDDING_H

#include <stdint.h>

/* y: rows x width, factor times the rows of the table. */
void nb_embedding_forward(float *y, const float *table, const int32_t *tokens, int64_t rows, int64_t width,
                          float factor);
/* Adds to dtable. */
void nb_embedding_backward(float *dtable, const float *dy, const int32_t *tokens, int64_t rows, int64_t width,
                           float factor);
/* Adds sin(t / 10000^(2i/width)) to the first of each pair of columns, cos to the second; t begins anew every `sequence` rows. */
void nb_positions_add(float *y, int64_t rows, int64_t sequence, int64_t width);

#endif
