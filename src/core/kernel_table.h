// SPDX-License-Identifier: Apache-2.0
/* The table of kernels that a shared object exports (kernels/kernel.h), read and checked. */
#ifndef NB_KERNEL_TABLE_H
#define NB_KERNEL_TABLE_H

#include <stddef.h>

#include "src/core/entry.h"

struct nb_library {
    void *handle;
    char *file;   /* as the user named it: a path, or "peer:NAME[=LIBRARY]" */
    char *path;   /* of the shared object itself */
    char *plugin; /* null: built in */
};

/* An entry with what it owns. */
struct nb_slot {
    struct nb_entry entry;
    struct nb_kernel kernel;
    char *variant;
};

struct nb_slots {
    struct nb_slot **items;
    size_t n;
};

/* -1 after nb_error, or NB_OTHER_ABI; what was read until then is in out all the same. Sorted by id. */
int nb_kernel_table_read(const struct nb_library *lib, struct nb_slots *out);

void nb_slots_free(struct nb_slots *list);
void nb_slots_append(struct nb_slots *list, const struct nb_slots *more);
/* For qsort(), as which nb_slots_by_id() compares two struct nb_slot *. */
void nb_slots_sort(struct nb_slots *list, int (*compare)(const void *, const void *));
int nb_slots_by_id(const void *a, const void *b);

#endif
