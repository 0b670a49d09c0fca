// SPDX-License-Identifier: Apache-2.0
/* How far a run has come: by group, which cases are checked, which launches and counters are in the journal. */
#ifndef NB_PROGRESS_H
#define NB_PROGRESS_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "src/measure/status.h"
#include "src/plan/plan.h"

struct nb_case_state {
    bool checked;
    enum nb_status status;
};

struct nb_group_state {
    struct nb_case_state *cases; /* as the plan's group has them */
    bool checked;                /* its check is in the journal */
    bool *launched;              /* by launch */
    bool counted;
    cJSON *copies;      /* candidates with their times, as in the check line */
    int64_t digests_at; /* where its row digests begin in the run's; -1: not checked in this process */
};

struct nb_run_state {
    const struct nb_plan *plan;
    struct nb_group_state *groups;
};

void nb_run_state_init(struct nb_run_state *s, const struct nb_plan *plan);
/* Takes over what DIR's journal holds. A journal of another plan is an error. */
int nb_run_state_read(struct nb_run_state *s, const char *dir);
void nb_run_state_release(struct nb_run_state *s);

/* The index of a key in a group, or -1. */
int nb_group_find(const struct nb_plan *plan, int group, const char *key);
const char *nb_group_key(const struct nb_plan *plan, int group, int index);
const struct nb_case *nb_group_case(const struct nb_plan *plan, int group, int index);
/* The fastest candidate with a pattern of loads and stores: its variant, or null. */
const char *nb_group_copy(const struct nb_group_state *g, int n_loads, int n_stores);

#endif
