// SPDX-License-Identifier: Apache-2.0
/* Which kernels of the registry a block selects, and which of its wishes no kernel fulfils. */
#ifndef NB_SELECTION_H
#define NB_SELECTION_H

#include <stdbool.h>

#include "src/core/registry.h"
#include "src/plan/config.h"
#include "src/plan/skips.h"

/* One product of lists: a block, or one of its includes with the block's lists where it names none. */
struct nb_product {
    const struct nb_values *lists[NB_MAX_AXES]; /* n == 0: the axis's default */
    const struct nb_block *block;
    int line;
    bool is_include;
};

struct nb_product nb_product_of(const struct nb_block *block, const struct nb_block *include);

bool nb_product_selects(const struct nb_product *p, const struct nb_entry *entry);
/* Counts, for cells cells each, what is asked for by name and not there: a backend, a width, a kernel, an op. */
void nb_product_count_missing(const struct nb_product *p, size_t cells, struct nb_skips *skips);

#endif
