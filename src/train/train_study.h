// SPDX-License-Identifier: Apache-2.0
/* Runs a plan of training jobs in worker processes, so that one that crashes or hangs costs its own answer. Rounds go over all groups, so
 * that a group's launches are spread over the run. Jobs that time steps run alone; the others side by side. */
#ifndef NB_TRAIN_STUDY_H
#define NB_TRAIN_STUDY_H

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

#endif
