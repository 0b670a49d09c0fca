// SPDX-License-Identifier: Apache-2.0
/* Gather and its transpose. */
#include "src/train/embedding.h"

#include <math.h>

void nb_embedding_forward(float *y, const float *table, const int32_t *tokens, int64_t rows, int64_t width,
                          float factor) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < width; i++) y[r * width + i] = factor * table[tokens[r] * width + i];
}

void nb_embedding_backward(float *dtable, const float *dy, const int32_t *tokens, int64_t rows, int64_t width,
                           float factor) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < width; i++) dtable[tokens[r] * width + i] += factor * dy[r * width + i];
}

void nb_positions_add(float *y, int64_t rows, int64_t sequence, int64_t width) {
    for (int64_t i = 0; i < width; i++) {
        const double turn = pow(10000, -(double)(i / 2 * 2) / (double)width);
        for (int64_t t = 0; t < sequence && t < rows; t++) {
            const float value = (float)(i % 2 ? cos((double)t * turn) : sin((double)t * turn));
            for (int64_t r = t; r < rows; r += sequence) y[r * width + i] += value;
        }
    }
}
