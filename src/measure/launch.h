// SPDX-License-Identifier: Apache-2.0
/* The parent's side: runs a plan as a sequence of worker processes and writes the journal. First every group is checked, one on each CPU
 * at a time; what is timed comes after that, one process at a time: the copies, then launches in rounds over the groups (schedule.h), so
 * that a group's launches are spread over the run, then the counters. */
#pragma once

#include <stdbool.h>

#include "src/measure/session.h"

/* Seconds that it will take on this machine with so many launches of each group. */
double nb_run_estimate_s(const struct nb_plan *plan, int launches, bool no_counters);
/* What DIR's journal already holds is not run again. Returns 0, -1 after nb_error, or the number of the signal that ended it;
 * in each case the journal has its end line. */
int nb_run_plan(const struct nb_plan *plan, struct nb_journal *journal, const char *dir,
                const struct nb_run_options *options);
