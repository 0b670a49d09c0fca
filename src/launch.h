// SPDX-License-Identifier: Apache-2.0
/* The parent's side: runs a plan as a sequence of worker processes, one at a time, and writes the journal. First every group is
 * checked, then launches go round robin over all groups, so that a group's launches are spread over the run, then the
 * counters. */
#ifndef NB_LAUNCH_H
#define NB_LAUNCH_H

#include <stdbool.h>

#include "src/journal.h"
#include "src/plan.h"

struct nb_run_options {
    const char **plugins; /* files */
    int n_plugins;
    const char *max_width; /* text, or null */
    bool no_counters;
    double
        case_timeout_s; /* a worker without a step forward for longer (and a time that grows with the shape) is ended */
};

/* What DIR's journal already holds is not run again. Returns 0, -1 after nb_error, or the number of the signal that ended it;
 * in each case the journal has its end line. */
int nb_run_plan(const struct nb_plan *plan, struct nb_journal *journal, const char *dir,
                const struct nb_run_options *options);

#endif
