// SPDX-License-Identifier: Apache-2.0
/* --shard and --budget: which groups, and how many cells of each. Both depend on the plan alone, never on chance. */
#ifndef NB_SHARE_H
#define NB_SHARE_H

#include <stdbool.h>

#include "src/plan/estimate.h"

/* mine[i]: does whole i belong to shard (1-based) of n_shards? Longest first, each to the shard with the least. */
void nb_shard_choose(const struct nb_wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                     int shard, int n_shards, bool *mine);

/* How many cells of each whole to keep, so that all of it takes no more than budget_s: thinned evenly over the plan. All 0 when
 * not even one cell fits; *least_s is what that one would take. */
void nb_budget_thin(const struct nb_wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                    double budget_s, size_t *keep, double *least_s);
/* The same by whole groups: keep[i] is all of whole i or nothing, evenly over the plan. *least_s: the cheapest group. */
void nb_budget_thin_wholes(const struct nb_wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                           double budget_s, size_t *keep, double *least_s);
/* The cells that stay when keep of n do, evenly spaced, the first among them: writes keep indices. */
void nb_thin(size_t n, size_t keep, size_t *which);

#endif
