// SPDX-License-Identifier: Apache-2.0
/* Cells that share their buffers, put together, put into order, thinned for a budget and dealt out to shards. */
#ifndef NB_GROUPS_H
#define NB_GROUPS_H

#include <stdbool.h>
#include <stddef.h>

#include "src/plan/cells.h"

/* All cells of one pass, dtype, shape, data, seed, parameters, stride, thread count and cache state. Where one of them is to be timed
 * beside no other SIMD width (wide vectors lower the clock of some CPUs for longer than a sample), cells of each width are a whole
 * of their own; those that width alone parts are a family, whose launches stand next to each other in time. */
struct nb_whole {
    size_t *cells; /* indices; after nb_whole_arrange() the reference first */
    size_t n;
    size_t index; /* its number in the whole plan */
    size_t family;
    bool single_width;
};

struct nb_wholes {
    struct nb_whole *items;
    size_t n;
    bool by_op; /* cells of several ops share no group */
};

/* Wholes that are zero but for by_op, in the order of their first cells, families together. */
void nb_wholes_make(struct nb_wholes *wholes, const struct nb_cells *cells);
/* Comparable cells side by side (style, statistics, width, formula, then op), the reference first: the first that the glob
 * matches, else a fused LayerNorm at the widest width, else the first. */
void nb_whole_arrange(struct nb_whole *whole, const struct nb_cells *cells, const char *reference);
/* For cells that are only checked, so that nothing has to stay together: groups of many cells, those with equal inputs and the same
 * mathematics side by side. */
void nb_wholes_batch(struct nb_wholes *wholes, const struct nb_cells *cells);
void nb_wholes_release(struct nb_wholes *wholes);

#endif
