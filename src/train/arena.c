// SPDX-License-Identifier: Apache-2.0
/* A list of blocks, freed together. */
#include "src/train/arena.h"

#include <assert.h>
#include <stdlib.h>

#include "src/core/log.h"

enum { LINE = 64 };

float *nb_room_take(struct nb_room *room, int64_t n) {
    assert(n > 0);
    const size_t bytes = (size_t)n * sizeof(float);
    room->blocks = nb_realloc(room->blocks, (unsigned)room->n_blocks + 1, sizeof *room->blocks);
    /* Zeroed pages are not touched before they are used: calloc, and the start moved up to a line. */
    char *block = nb_alloc(bytes + LINE, 1);
    room->blocks[room->n_blocks++] = block;
    room->bytes += bytes;
    return (void *)(block + (LINE - (uintptr_t)block % LINE) % LINE);
}

void nb_room_release(struct nb_room *room) {
    for (int i = 0; i < room->n_blocks; i++) free(room->blocks[i]);
    free(room->blocks);
    *room = (struct nb_room){0};
}
