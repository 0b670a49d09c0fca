// SPDX-License-Identifier: Apache-2.0
/* Convolutions of images [channel][row][column], one image after another, by matrix products: what the kernel sees at each position becomes
 * a column of a matrix (im2col). Stride 1, an odd side, edges filled with zeros: height and width stay. */
#ifndef NB_TRAIN_CONVOLUTION_H
#define NB_TRAIN_CONVOLUTION_H

#include <stddef.h>
#include <stdint.h>

struct nb_convolution {
    int64_t batch, height, width, in, out; /* in, out: channels */
    int64_t side;                          /* of the kernel */
};
/* Floats that the columns of one image take; nothing is kept from forward to backward. */
int64_t nb_convolution_columns(const struct nb_convolution *c);

/* y[batch][out][h][w] = w[out][in][side][side] over x[batch][in][h][w] */
void nb_convolution_forward(const struct nb_convolution *c, float *y, const float *x, const float *w, float *columns);
/* Adds to dw, overwrites dx, which may be null. */
void nb_convolution_backward(const struct nb_convolution *c, float *dx, float *dw, const float *dy, const float *x,
                             const float *w, float *columns);

/* Pooling of planes [height][width], any number of them. */

/* The largest of each 2 x 2; height and width even. from: index of it within the plane, for backward, which overwrites dx. */
void nb_max_pool_forward(float *y, int32_t *from, const float *x, int64_t planes, int64_t height, int64_t width);
void nb_max_pool_backward(float *dx, const float *dy, const int32_t *from, int64_t planes, int64_t height,
                          int64_t width);
/* The mean of each plane. */
void nb_mean_pool_forward(float *y, const float *x, int64_t planes, int64_t pixels);
void nb_mean_pool_backward(float *dx, const float *dy, int64_t planes, int64_t pixels);

#endif
