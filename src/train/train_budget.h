// SPDX-License-Identifier: Apache-2.0
/* Which groups of training jobs fit into the time that is left. Half a measurement decides nothing, so a group is in or out as a whole. */
#ifndef NB_TRAIN_BUDGET_H
#define NB_TRAIN_BUDGET_H

#include <stdbool.h>

struct nb_train_share { /* of one group */
    double job_s;       /* of one job: guessed, then the mean of those that were made */
    double spent_s;     /* in jobs */
    int n_done, n_left; /* jobs */
    int n_seats;        /* jobs that run side by side */
    int dropped_at;     /* the round that it was left out of first */
    bool dropped, readmitted;
};
struct nb_train_budget {
    struct nb_train_share *shares;
    int n;
};

/* Seconds of what is left to do, in or out; of all groups that are in. */
double nb_train_share_cost(const struct nb_train_share *s);
double nb_train_budget_cost(const struct nb_train_budget *b);
/* A job of the group took so long. */
void nb_train_share_settle(struct nb_train_share *s, double job_s);

/* Leaves the most expensive out until the others fit. */
void nb_train_budget_fit(struct nb_train_budget *b, double left_s, int round);
/* Costs are guesses until a group's first job, and rather too high than too low: when all others are through, the cheapest of those
 * that are out comes in if there is time for it, once each. Did one come in? */
bool nb_train_budget_readmit(struct nb_train_budget *b, double left_s);
/* Seconds that all which are out would need besides what is left; at least 1. */
double nb_train_budget_wanted(const struct nb_train_budget *b, double left_s);

#endif
