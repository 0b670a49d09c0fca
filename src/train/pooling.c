// SPDX-License-Identifier: Apache-2.0
/* Pooling; of equal values the first counts. */
#include "src/train/pooling.h"

#include <assert.h>
#include <string.h>

void nb_max_pool_forward(float *y, int32_t *from, const float *x, int64_t planes, int64_t height, int64_t width) {
    assert(height % 2 == 0 && width % 2 == 0);
    for (int64_t plane = 0; plane < planes; plane++, x += height * width)
        for (int64_t row = 0; row < height; row += 2)
            for (int64_t col = 0; col < width; col += 2) {
                const int64_t at = row * width + col, others[] = {at + 1, at + width, at + width + 1};
                int64_t best = at;
                for (int i = 0; i < 3; i++)
                    if (x[others[i]] > x[best]) best = others[i];
                *y++ = x[best];
                *from++ = (int32_t)best;
            }
}

void nb_max_pool_backward(float *dx, const float *dy, const int32_t *from, int64_t planes, int64_t height,
                          int64_t width) {
    const int64_t pooled = height * width / 4;
    memset(dx, 0, (size_t)(planes * height * width) * sizeof *dx);
    for (int64_t plane = 0; plane < planes; plane++)
        for (int64_t i = 0; i < pooled; i++)
            dx[plane * height * width + from[plane * pooled + i]] += dy[plane * pooled + i];
}

void nb_mean_pool_forward(float *y, const float *x, int64_t planes, int64_t pixels) {
    for (int64_t plane = 0; plane < planes; plane++) {
        double sum = 0;
        for (int64_t i = 0; i < pixels; i++) sum += (double)x[plane * pixels + i];
        y[plane] = (float)(sum / (double)pixels);
    }
}

void nb_mean_pool_backward(float *dx, const float *dy, int64_t planes, int64_t pixels) {
    for (int64_t plane = 0; plane < planes; plane++)
        for (int64_t i = 0; i < pixels; i++) dx[plane * pixels + i] = dy[plane] / (float)pixels;
}
