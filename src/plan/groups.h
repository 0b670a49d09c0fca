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

/* ---- how long a group takes ---- */

/* How long a group will take, before anything has been measured: to deal out shards, to keep a budget, and to weigh the steps of a run
 * against each other while the time left is estimated from what was measured. */

#define NB_GROUP_ARMS 10 /* cases of a group that run interleaved, the copy and a repeated reference not counted */

struct nb_effort {
    int launches, blocks; /* 0 launches: checked, not timed */
    double sample_ms;
};

/* Seconds by stage: of all checks, one round of launches, all counters. */
struct nb_estimate {
    double check, launch, counters;
};
/* For the first n of these cells as one group, split as it will be. */
struct nb_estimate nb_estimate(const struct nb_cells *cells, const size_t *which, size_t n,
                               const struct nb_effort *effort);
/* Over all its launches. */
double nb_estimate_total_s(const struct nb_estimate *e, const struct nb_effort *effort);
double nb_estimate_s(const struct nb_cells *cells, const size_t *which, size_t n, const struct nb_effort *effort);
/* Into how many parts n cases are split: those that are only checked stay together. */
size_t nb_n_parts(size_t n, const struct nb_effort *effort);

/* ---- shards and budgets ---- */

/* --shard and --budget: which groups, and how many cells of each. Both depend on the plan alone, never on chance. */

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
