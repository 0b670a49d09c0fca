// SPDX-License-Identifier: Apache-2.0
/* Arrays that live as long as a model, and how many bytes they take together. */
#ifndef NB_TRAIN_ROOM_H
#define NB_TRAIN_ROOM_H

#include <stddef.h>
#include <stdint.h>

struct nb_arena {
    void **blocks;
    int n_blocks;
    size_t bytes;
};

/* n floats, zero, aligned to 64 bytes; the program ends where there is no memory. */
float *nb_arena_take(struct nb_arena *arena, int64_t n);
void nb_arena_release(struct nb_arena *arena);

#endif
