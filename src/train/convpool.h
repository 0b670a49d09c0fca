// SPDX-License-Identifier: Apache-2.0
/* ConvPool-CNN-C (Springenberg et al. 2015, as Salimans & Kingma 2016 and the RMSNorm paper's table 10 train it) on images of CIFAR-10's
 * shape (textures.h): three convolutions of 96 channels, pooling, three of 192, pooling, one of 192 and two of 192 with a side of 1, the
 * mean of each plane, ten classes. Pooling takes the largest of 2 x 2 where theirs takes 3 x 3 with a stride of 2.
 *
 * Behind each convolution a norm, a gain and a bias for each channel, and a leaky ReLU of 0.1. As in the paper's code the norm of LayerNorm,
 * RMSNorm and pRMSNorm is over height and width of one channel of one image; a row of the kernel is such a plane. BatchNorm is over all
 * images and positions of a channel; for its kernels, which want channels to be columns, planes are turned, which takes time of its own
 * that is not counted as the norm's. */
#ifndef NB_TRAIN_CONVPOOL_H
#define NB_TRAIN_CONVPOOL_H

#include "src/train/workload.h"

extern const struct nb_workload nb_workload_convpool, nb_workload_tiny_convpool;

#endif
