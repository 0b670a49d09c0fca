// SPDX-License-Identifier: Apache-2.0
/* How long a group will take, before anything has been measured: to deal out shards, to keep a budget, and to weigh the steps of a run
 * against each other while the time left is estimated from what was measured. */
#ifndef NB_ESTIMATE_H
#define NB_ESTIMATE_H

#include "src/plan/groups.h"

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

#endif
