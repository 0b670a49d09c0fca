// SPDX-License-Identifier: Apache-2.0
/* The memory a kernel is called on. For checking: tensors flush against a guard page, or inside poisoned padding. For timing:
 * one aligned slab with canaries. After a call, what the kernel must not have touched is compared with what was laid there. */
#ifndef NB_BUFFERS_H
#define NB_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/case.h"
#include "src/inputs.h"

enum nb_placement {
    NB_PLACE_INTERIOR, /* poison before, between and behind the rows, at odd offsets of the element's size */
    NB_PLACE_END,      /* every tensor ends at a guard page */
    NB_PLACE_START,    /* every tensor starts behind a guard page */
    NB_PLACE_SLAB,     /* 64-byte aligned at random lines, canaries between; for timing */
};

struct nb_tensor {
    const char *name;
    void *data;          /* first element */
    int64_t rows, cols, stride; /* in elements */
    size_t item;         /* bytes of an element */
    bool output;
    unsigned char *map;  /* its mapping, guard pages included */
    size_t map_bytes;
    const void *source;  /* packed input it was filled from, null for outputs */
    unsigned char *writable; /* the part of the mapping that is not guard, with its size: poison + data */
    size_t writable_bytes;
};
#define NB_MAX_TENSORS 20

struct nb_buffers {
    struct nb_tensor tensors[NB_MAX_TENSORS];
    int n;
    enum nb_placement placement;
    uint32_t poison; /* the byte pattern of padding and of untouched outputs */
    void *scratch;
    size_t scratch_bytes;
};

/* Lays out and fills every tensor of the op for rows [0, n_rows) of the case. seed: random offsets (NB_PLACE_SLAB).
 * poison: the word that padding and outputs are filled with; two runs with different words betray a read of padding.
 * -1 after nb_error when memory cannot be had. */
int nb_buffers_init(struct nb_buffers *b, const struct nb_case *c, const struct nb_inputs *in, int64_t n_rows,
                    enum nb_placement placement, uint64_t seed, uint32_t poison, size_t scratch_bytes);
/* Points the call's tensors here; gamma, beta as the case's formula asks (f32 or x's dtype). */
void nb_buffers_attach(const struct nb_buffers *b, const struct nb_case *c, struct nb_call *call);
/* Poisons the outputs again (y, residual_out, statistics, scratch). */
void nb_buffers_poison_outputs(struct nb_buffers *b);
struct nb_tensor *nb_buffers_tensor(struct nb_buffers *b, const char *name); /* null */

enum nb_damage { NB_INTACT, NB_DAMAGED_BEFORE, NB_DAMAGED_BETWEEN, NB_DAMAGED_AFTER, NB_DAMAGED_INPUT };
/* The first tensor that was harmed, with a sentence about where. */
enum nb_damage nb_buffers_verify(const struct nb_buffers *b, char *where, size_t n);
/* Which tensor's guard an address lies in, for the handler of a fault: null, or its name; *after tells the side. */
const char *nb_buffers_guard_of(const struct nb_buffers *b, const void *address, bool *after);
void nb_buffers_release(struct nb_buffers *b);

#endif
