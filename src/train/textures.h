// SPDX-License-Identifier: Apache-2.0
/* Images that can be told apart by their texture, drawn from a number: gratings of ten classes (five directions, two wavelengths) in a
 * colour, a phase, a contrast and a brightness of their own, under noise. They stand for CIFAR-10, which no machine has by itself: its
 * shapes, ten classes, neighbours that hang together. They are easier than photographs, so that losses are no losses on CIFAR-10. */
#ifndef NB_TRAIN_TEXTURES_H
#define NB_TRAIN_TEXTURES_H

#include <stdint.h>

enum { NB_TEXTURE_CLASSES = 10, NB_TEXTURE_COLOURS = 3 };

/* Image number i: its class, pixels[colour][row][column]. */
int32_t nb_texture(float *pixels, uint64_t i, int64_t side);

#endif
