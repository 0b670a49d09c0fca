// SPDX-License-Identifier: Apache-2.0
/* One question of the search for frontiers: do the rows of this family and parameter come back right? */
#ifndef NB_FRONTIER_PROBE_H
#define NB_FRONTIER_PROBE_H

#include "src/lab/stress/frontier_theory.h"
#include "src/lab/stress/row_score.h"
#include "src/lab/stress/trial_rows.h"

/* What the worst row of one call over all seeds had. */
struct nb_seen {
    int64_t nan, inf, zero; /* elements of all rows */
    double accurate, relative, max_ulp;
    uint64_t seed; /* of the witness: the first strange element, else the one with the largest error */
    int64_t row, col;
    double got, want;
};

struct nb_prober {
    struct nb_trial *t;
    int n_seeds;
    struct nb_draws *draws;
    struct nb_draw_facts facts;
    struct nb_row_score *scores;
    struct nb_answer *answers; /* remembered */
    int n_answers, room;
};

int nb_prober_init(struct nb_prober *p, struct nb_trial *t, int n_seeds); /* -1 with t->reason */
/* -1 with t->reason when the kernel failed. */
int nb_prober_look(struct nb_prober *p, enum nb_family family, double parameter, struct nb_seen *seen);
bool nb_seen_is_right(const struct nb_seen *seen, enum nb_demand demand, enum nb_dtype dtype);
/* 1, 0, or -1 with t->reason. */
int nb_prober_right(struct nb_prober *p, enum nb_family family, double parameter, enum nb_demand demand);
void nb_prober_release(struct nb_prober *p);

#endif
