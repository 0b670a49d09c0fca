// SPDX-License-Identifier: Apache-2.0
/* The parent's side: runs a plan as a sequence of worker processes, one at a time, and writes the journal. First every group is
 * checked, then launches go round robin over all groups, so that a group's launches are spread over the run, then the
 * counters. */
#ifndef NB_LAUNCH_H
#define NB_LAUNCH_H

#include "src/launch/visit.h"

/* What DIR's journal already holds is not run again. Returns 0, -1 after nb_error, or the number of the signal that ended it;
 * in each case the journal has its end line. */
int nb_run_plan(const struct nb_plan *plan, struct nb_journal *journal, const char *dir,
                const struct nb_run_options *options);

#endif
