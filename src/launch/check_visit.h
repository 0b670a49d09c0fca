// SPDX-License-Identifier: Apache-2.0
/* The checks of a plan: each group in a worker of its own, again and again with what is left, as long as a worker dies of a case. */
#ifndef NB_CHECK_VISIT_H
#define NB_CHECK_VISIT_H

#include "src/launch/visit.h"

/* A group whose check is in the journal already is checked for its digests alone. -1 after nb_error. */
int nb_check_group(struct nb_run *run, int group);
/* All groups of a plan that times nothing, as many at once as there are CPUs: nobody's time is spoilt by a neighbour. done() is
 * told of each group, one at a time. -1 after nb_error. */
int nb_check_all(struct nb_run *run, void (*done)(struct nb_run *run, int group));

#endif
