// SPDX-License-Identifier: Apache-2.0
/* Pooling of planes [height][width], any number of them. */
#ifndef NB_TRAIN_POOLING_H
#define NB_TRAIN_POOLING_H

#include <stdint.h>

/* The largest of each 2 x 2; height and width even. from: index of it within the plane, for backward, which overwrites dx. */
void nb_max_pool_forward(float *y, int32_t *from, const float *x, int64_t planes, int64_t height, int64_t width);
void nb_max_pool_backward(float *dx, const float *dy, const int32_t *from, int64_t planes, int64_t height,
                          int64_t width);
/* The mean of each plane. */
void nb_mean_pool_forward(float *y, const float *x, int64_t planes, int64_t pixels);
void nb_mean_pool_backward(float *dx, const float *dy, int64_t planes, int64_t pixels);

#endif
