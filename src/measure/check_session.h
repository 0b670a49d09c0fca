// SPDX-License-Identifier: Apache-2.0
/* The checks of a plan: each group in a worker of its own, again and again with what is left, as long as a worker dies of a case. */
#ifndef NB_CHECK_VISIT_H
#define NB_CHECK_VISIT_H

#include "src/measure/session.h"

/* How many are under way at once. */
int nb_checks_at_once(const struct nb_plan *plan, int n_cpus);
/* All groups that have something to come, as many at once as there are CPUs: nothing is timed meanwhile. One whose check is in the journal
 * already is checked for its digests alone. done() is told of every group, one at a time. -1 after nb_error. */
int nb_check_all(struct nb_run *run, void (*done)(struct nb_run *run, int group));
/* Chooses the roofs of a group that are not known yet, with nobody beside: the fastest copy for each pattern of loads and stores. -1
 * after nb_error. */
int nb_choose_copies(struct nb_run *run, int group);

#endif
