// SPDX-License-Identifier: Apache-2.0
/* Gratings. */
#include "src/train/textures.h"

#include <math.h>

#include "src/core/random.h"

enum { DIRECTIONS = 5, STREAM = 0x7e87 };
static const double PI = 3.14159265358979323846, WAVELENGTHS[2] = {5, 8}, NOISE = 0.4;

int32_t nb_texture(float *pixels, uint64_t i, int64_t side) {
    const struct nb_random r = nb_random_stream(i, STREAM);
    const int32_t class = (int32_t)(nb_random_bits(r, 0) % NB_TEXTURE_CLASSES);
    const double direction = PI * (class % DIRECTIONS + 0.3 * (nb_random_open(r, 1) - 0.5)) / DIRECTIONS;
    const double wave = 2 * PI / WAVELENGTHS[class / DIRECTIONS], phase = 2 * PI * nb_random_open(r, 2);
    const double contrast = 0.3 + nb_random_open(r, 3);
    uint64_t next = 16;
    for (int colour = 0; colour < NB_TEXTURE_COLOURS; colour++) {
        const double weight = nb_random_normal(r, 4 + (uint64_t)colour),
                     bright = nb_random_normal(r, 8 + (uint64_t)colour);
        for (int64_t row = 0; row < side; row++)
            for (int64_t col = 0; col < side; col++) {
                const double along = (double)col * cos(direction) + (double)row * sin(direction);
                *pixels++ = (float)(bright + contrast * weight * sin(wave * along + phase) +
                                    NOISE * nb_random_normal(r, next++));
            }
    }
    return class;
}
