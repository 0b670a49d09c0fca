// SPDX-License-Identifier: Apache-2.0
/* config x registry x CPU -> groups of cases: the matrix, with every cell that was left out counted by its reason. */
#ifndef NB_PLAN_H
#define NB_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "src/case.h"
#include "src/config.h"

#define NB_GROUP_ARMS 10 /* cases of a group that run interleaved, the twin and a repeated reference not counted */
#define NB_MAX_CASES 200000

struct nb_skip {
    char *reason; /* "width 512: this CPU has no AVX-512" */
    char *key;    /* null for cells that were never built (no kernel); else the case, which gets a record "skipped" */
    size_t n;     /* cells with this reason */
};

/* Cases that share pass, dtype, shape, data, seed, stride, threads and cache state. cases[reference] is the one the others
 * are compared with; a group that was split carries it in each part (only the first part reports it). */
struct nb_group {
    size_t *cases; /* indices into plan.cases */
    size_t n;
    size_t reference;     /* index into cases[] of this group */
    int part;             /* 0 for an unsplit group and for the first part */
    size_t index;         /* its number in the whole plan, before --shard chose */
    double estimate_s;    /* of all its launches */
};

struct nb_plan {
    struct nb_case *cases;
    char **keys;
    size_t n_cases;
    struct nb_group *groups;
    size_t n_groups;
    struct nb_skip *skips; /* by reason, most frequent first */
    size_t n_skips;
    size_t n_runnable_elsewhere; /* cells that only this CPU refuses: with no case left the exit code is 77 */
    int launches, blocks, counters;
    double slot_ms, estimate_s;
    uint64_t order_seed;
    char hash[20]; /* of everything that decides what is measured; --resume and merge compare it */
};

struct nb_plan_options {
    const char *const *filters; /* globs on the case key; a case stays when any matches */
    size_t n_filters;
    double budget_s;            /* 0: none */
    int shard, n_shards;        /* 1-based; 0: all */
};

int nb_plan_make(struct nb_plan *plan, const struct nb_config *config, const struct nb_plan_options *options);
void nb_plan_release(struct nb_plan *plan);

#endif
