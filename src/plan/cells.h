// SPDX-License-Identifier: Apache-2.0
/* A config's blocks times the registry: every cell of the matrix that makes sense, once. */
#ifndef NB_CELLS_H
#define NB_CELLS_H

#include <stddef.h>

#include "src/core/case.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/plan/config.h"
#include "src/plan/labels.h"
#include "src/plan/match.h"
#include "src/plan/skips.h"

#define NB_MAX_CASES 200000

struct nb_cell {
    struct nb_case c;
    char *key;
    const struct nb_entry *entry;
    char *refused;       /* why this machine cannot run it, null when it can */
    bool refused_by_cpu; /* and another CPU could */
    bool isolate_width;  /* some block wants it timed beside no other width */
    struct nb_label_set labels;
};

struct nb_cells {
    struct nb_cell *items;
    size_t n;
    struct nb_text_map known; /* by key with eps and k written in one way, so that 1e-5 and 1e-05 are one case */
    char **known_keys;
    size_t *known_at; /* index of the cell, NB_NOWHERE for one that was left out */
    struct nb_labels labels;
};

/* Fills zeroed cells, in the order of blocks, kernels and values. Cells that make no sense are counted in skips; those that only
 * this machine refuses stay, since which cell belongs to which shard may not depend on the machine. -1 after nb_error:
 * an absurd product, data that does not exist. */
int nb_cells_expand(struct nb_cells *cells, const struct nb_config *config, const struct nb_filters *filters,
                    struct nb_skips *skips);
void nb_cells_release(struct nb_cells *cells);

#endif
