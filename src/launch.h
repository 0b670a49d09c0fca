// SPDX-License-Identifier: Apache-2.0
/* The parent's side: runs a plan as a sequence of worker processes, one at a time, and writes the journal. */
#ifndef NB_LAUNCH_H
#define NB_LAUNCH_H

#include <stdbool.h>

#include "src/plan.h"
#include "src/results.h"

struct nb_run_options {
    const char *const *plugins;
    int n_plugins;
    const char *max_width;      /* text, or null */
    bool no_counters;
    double case_timeout_s;      /* a case that is silent for longer is ended */
    bool progress;
};

/* What is already in the journal is not run again. Returns 0; -1 after nb_error; a signal number when interrupted. */
int nb_run_plan(const struct nb_plan *plan, struct nb_journal *journal, const char *dir,
                const struct nb_run_options *options);

#endif
