// SPDX-License-Identifier: Apache-2.0
/* How long a group takes, before anything has been measured: to deal out shards, to keep a budget, and to weigh the steps
 * of a run against each other while the time left is estimated from what was measured. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/plan/cells.h"

#define NB_GROUP_ARMS 10 /* cases of a group that run interleaved, the copy and a repeated reference not counted */

/* What a group goes through: its check, the trials of its copies, its launches, its counter pass. */
enum nb_stage { NB_STAGE_CHECK, NB_STAGE_ROOFS, NB_STAGE_LAUNCH, NB_STAGE_COUNTERS, NB_N_STAGES };
#define NB_COPY_TRIALS 5 /* of a group's copies */

struct nb_effort {
    int launches, blocks; /* 0 launches: checked, not timed */
    double sample_ms;
    bool anywhere; /* the same figure on every machine, whatever its caches */
};

/* Into how many parts n cases are split: those that are only checked stay together. */
size_t nb_count_parts(size_t n, const struct nb_effort *effort);
/* Of one step of each stage, for the first n of these cells as one group, split as it will be. Returns how many blocks its launches have: the
 * effort's, or several times as many where cold memory takes longer to lay out than they do. */
int nb_estimate(double s[NB_N_STAGES], const struct nb_cells *cells, const size_t *which, size_t n,
                const struct nb_effort *effort);
/* Over all its stages and launches. */
double nb_estimate_total_s(const double s[NB_N_STAGES], const struct nb_effort *effort);

/* Of the buffers that a case takes in turn where its caches are to be cold, all sets together: beyond this machine's last cache; 0: hot. */
double nb_cold_bytes(const struct nb_case *c);

/* Deals n things that take so long out to shards: longest first, each to the shard with the least. shard_of: from 1. */
void nb_shards_deal(const double *seconds, size_t n, int n_shards, int *shard_of);
