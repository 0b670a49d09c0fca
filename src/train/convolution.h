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
/* Floats of arena for the columns of one image; nothing is kept from forward to backward. */
int64_t nb_convolution_arena(const struct nb_convolution *c);
double nb_convolution_flops(const struct nb_convolution *c); /* forward */

/* y[batch][out][h][w] = w[out][in][side][side] over x[batch][in][h][w] */
void nb_convolution_forward(const struct nb_convolution *c, float *y, const float *x, const float *w, float *arena);
/* Adds to dw, overwrites dx, which may be null. */
void nb_convolution_backward(const struct nb_convolution *c, float *dx, float *dw, const float *dy, const float *x,
                             const float *w, float *arena);

#endif
