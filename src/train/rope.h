// SPDX-License-Identifier: Apache-2.0
/* Rotary positions (Su et al. 2021) in the order of Llama and MiniMind: element i of a head and element i + width / 2 turn together by
 * position / theta^(2i / width). */
#ifndef NB_TRAIN_ROPE_H
#define NB_TRAIN_ROPE_H

#include <stdint.h>

struct nb_rope {
    int64_t positions, half; /* half the width of a head */
    float *cosine, *sine;    /* positions x half */
};

void nb_rope_init(struct nb_rope *r, int64_t positions, int64_t head_width, double theta);
/* x: rows x heads x head width, in place; row r stands at position r mod positions. */
void nb_rope_forward(const struct nb_rope *r, float *x, int64_t rows, int64_t heads);
/* Its transpose, which is its inverse. */
void nb_rope_backward(const struct nb_rope *r, float *dx, int64_t rows, int64_t heads);
void nb_rope_release(struct nb_rope *r);

#endif
