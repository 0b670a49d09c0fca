// SPDX-License-Identifier: Apache-2.0
/* One "launch" line: its samples are given to the arms of the group, each with its copy's and the reference's. */
#ifndef NB_FOLD_LAUNCH_H
#define NB_FOLD_LAUNCH_H

#include "src/record/fold_plan.h"

/* The group that a line is about, and the arm of it with a key; null after nb_error. */
struct nb_fold_group *nb_fold_find_group(struct nb_fold *f, const cJSON *line);
struct nb_fold_arm *nb_fold_find_arm(struct nb_fold_group *group, const cJSON *json);

int nb_fold_launch(struct nb_fold *f, const cJSON *line); /* -1 after nb_error */

#endif
