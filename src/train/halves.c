// SPDX-License-Identifier: Apache-2.0
/* Copies of rows. */
#include "src/train/halves.h"

#include <string.h>

void nb_halves_join(float *y, const float *left, const float *right, int64_t rows, int64_t width) {
    const size_t bytes = (size_t)width * sizeof *y;
    for (int64_t r = 0; r < rows; r++) {
        memcpy(y + 2 * r * width, left + r * width, bytes);
        memcpy(y + (2 * r + 1) * width, right + r * width, bytes);
    }
}

void nb_halves_split(float *left, float *right, const float *y, int64_t rows, int64_t width) {
    const size_t bytes = (size_t)width * sizeof *y;
    for (int64_t r = 0; r < rows; r++) {
        memcpy(left + r * width, y + 2 * r * width, bytes);
        memcpy(right + r * width, y + (2 * r + 1) * width, bytes);
    }
}
