// SPDX-License-Identifier: Apache-2.0
/* Runs a plan of training jobs in worker processes, so that one that crashes or hangs costs its own answer. Rounds go over all groups, so
 * that a group's launches are spread over the run. Jobs that time steps run alone; the others side by side. */
#ifndef NB_TRAIN_STUDY_H
#define NB_TRAIN_STUDY_H

#include <stdbool.h>

#include "src/train/train_results.h"

struct nb_train_study {
    const struct nb_train_plan *plan;
    const char *dir;                 /* of training.jsonl; what it answers is not asked again */
    const char *text;                /* file to train on; null: the usual one */
    const char *max_width;           /* or null */
    double budget_s;                 /* groups that do not fit are left out, the most expensive first */
    double launch_s;                 /* how long the steps of a launch go on */
    int rounds[NB_N_TRAIN_MEASURES]; /* of each kind of group, where the plan asks for no more */
};

/* Answers, those of an earlier run included, go to *out. 0, -1 after nb_error, or the number of the signal that ended it. */
int nb_train_study_run(const struct nb_train_study *study, struct nb_train_results *out);

/* Null, or why nothing can be trained here, with the mend: it asks for the library of matrix products without loading it. */
const char *nb_train_lacks(void);

/* Which groups of training jobs fit into the time that is left. Half a measurement decides nothing, so a group is in or out as a whole. */

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
