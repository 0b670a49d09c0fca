// SPDX-License-Identifier: Apache-2.0
/* config x registry x CPU -> groups of cases: the matrix, with every cell that was left out counted by its reason. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/case.h"
#include "src/plan/cells.h"
#include "src/plan/config.h"
#include "src/plan/estimate.h"

/* What a budget leaves out last: cases that answer first (which LayerNorm and which RMSNorm is the fastest, forward in f32, in a cache and from
 * memory), before it other groups that compare those two. */
enum nb_worth { NB_WORTH_LITTLE, NB_WORTH_COMPARES, NB_WORTH_ANSWERS };

/* Of a plan without launches any cases. Else cases that share backend, pass, dtype, shape, data, seed, parameters, stride, threads and cache
 * state. cases[reference] is the one the others are compared with; a group that was split carries it in each part (only the first part
 * reports it). */
struct nb_group {
    size_t *cases; /* indices into plan.cases */
    size_t n;
    size_t reference;           /* index into cases[] of this group */
    int part;                   /* 0 for an unsplit group and for the first part */
    size_t index;               /* of the group that it is (a part of), in the whole plan, before --shard chose */
    size_t family;              /* of groups that width alone parts, which stand next to each other */
    enum nb_worth worth;        /* the same of all that goes together */
    bool untimed;               /* nb_case_is_timed() of none of its cases, which are of one backend */
    bool single_width;          /* no case of another width may be timed beside its own */
    int blocks;                 /* of a launch: the plan's, or several times as many (src/plan/estimate.h) */
    double step_s[NB_N_STAGES]; /* as estimated, of one step of each stage: a trial, a launch */
    double estimate_s;          /* of all its stages and launches */
};

struct nb_plan {
    struct nb_case *cases;
    char **keys;
    struct nb_label_set *case_labels; /* of each case; null: no block has a label */
    struct nb_labels labels;
    size_t n_cases;
    struct nb_group *groups;
    size_t n_groups;
    struct nb_skips skips;       /* most frequent reason first, the entries of a reason together */
    size_t n_runnable_elsewhere; /* cells that only this CPU refuses: with no case left the exit code is 77 */
    int launches, blocks;        /* 0 launches: all cases are checked, none is timed or counted */
    int most_launches; /* of a group; above launches: they are added until the half-widths of its ratios are within aim */
    double aim, budget_s; /* a share, such as 0.03; above 0, infinite: no limit */
    double kept_s;        /* of the budget, for confirmations of what looks behind and for what follows the run */
    size_t n_over_budget; /* cases that the budget dropped */
    bool leaves_none_out; /* the budget ends added launches, no more: each group has what every group has to have */
    double sample_ms, estimate_s; /* with the fewest launches */
    bool is_shard;
    uint64_t order_seed;
    struct nb_compare_settings compare; /* the config's */
    /* Of everything that decides what is measured, before this CPU, --shard and --budget took their part away: the shards of one
     * matrix have one hash, on whatever machines they run. */
    char hash[20];
};

struct nb_plan_options {
    const char *const *filters; /* globs on the case key; a case stays when any matches */
    size_t n_filters;
    double budget_s;     /* 0: the config's */
    double kept_share;   /* of the budget, for what follows the run */
    int shard, n_shards; /* 1-based; 0: all */
    bool by_kernel;      /* without launches: all cases of a kernel and dtype are in one shard */
};

/* -1 after nb_error: an absurd product, data that does not exist, a budget that is too small for a single case. A plan without
 * cases is no error here. */
int nb_plan_make(struct nb_plan *plan, const struct nb_config *config, const struct nb_plan_options *options);
void nb_plan_release(struct nb_plan *plan);

/* Does the number of launches follow from how wide the intervals are? */
static inline bool nb_plan_is_adaptive(const struct nb_plan *plan) { return plan->most_launches > plan->launches; }

/* Has it launches? */
static inline bool nb_group_is_timed(const struct nb_plan *plan, size_t group) {
    return plan->launches > 0 && !plan->groups[group].untimed;
}

/* Are its events counted? The CPU's say nothing of a device. */
static inline bool nb_group_is_counted(const struct nb_plan *plan, size_t group) {
    return nb_group_is_timed(plan, group) && plan->cases[plan->groups[group].cases[0]].backend == NB_BACKEND_CPU;
}
