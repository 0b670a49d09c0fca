// SPDX-License-Identifier: Apache-2.0
/* A list of blocks, freed together. */
#include "src/train/arena.h"

#include <assert.h>
#include <stdlib.h>

#include "src/core/log.h"

enum { LINE = 64 };

float *nb_arena_take(struct nb_arena *arena, int64_t n) {
    assert(n > 0);
    const size_t bytes = (size_t)n * sizeof(float);
    arena->blocks = nb_realloc(arena->blocks, (unsigned)arena->n_blocks + 1, sizeof *arena->blocks);
    /* Zeroed pages are not touched before they are used: calloc, and the start moved up to a line. */
    char *block = nb_alloc(bytes + LINE, 1);
    arena->blocks[arena->n_blocks++] = block;
    arena->bytes += bytes;
    return (void *)(block + (LINE - (uintptr_t)block % LINE) % LINE);
}

void nb_arena_release(struct nb_arena *arena) {
    for (int i = 0; i < arena->n_blocks; i++) free(arena->blocks[i]);
    free(arena->blocks);
    *arena = (struct nb_arena){0};
}
