// SPDX-License-Identifier: Apache-2.0
/* Half of a LayerNorm: re-centring alone, y = (x - mean) gamma, or re-scaling alone, y = x / sqrt(var + eps) gamma with the variance
 * about the mean, which itself stays. For g = dy gamma, means over the row and r = 1 / sqrt(var + eps):
 *   centred  dx = g - mean(g)
 *   scaled   dx = r g - (x - mean) r^3 mean(g x) */
#ifndef NB_TRAIN_RESCALE_H
#define NB_TRAIN_RESCALE_H

#include <stdbool.h>
#include <stdint.h>

struct nb_rescale {
    bool scales; /* else it centres */
    double eps;
    int64_t rows, cols;
    float *mean, *rstd; /* per row: written by forward, read by backward */
};

void nb_rescale_forward(const struct nb_rescale *r, float *y, const float *x, const float *gamma);
/* Overwrites dx and dgamma. */
void nb_rescale_backward(const struct nb_rescale *r, float *dx, float *dgamma, const float *dy, const float *x,
                         const float *gamma);

#endif
