// SPDX-License-Identifier: Apache-2.0
/* A plan measured into a folder with a journal: what `run` and `stress` have in common. */
#ifndef NB_RUN_MEASURE_H
#define NB_RUN_MEASURE_H

#include "cmd/run_plan.h"

struct nb_measuring {
    const struct nb_plan_request *request;
    const struct nb_plan *plan;
    const char *config;       /* its name */
    const char *out, *resume; /* folder to make, or to go on with; both null: a new one below results/ */
    bool no_counters;
    bool confirms; /* what looks behind will be measured again after it */
    double case_timeout_s;
    int argc; /* what the journal keeps, so that --resume can make the plan again */
    char **argv;
};

/* The folder; owned. */
char *nb_measuring_folder(const struct nb_measuring *m);
/* Opens the journal in dir and runs the plan. Returns 0, -1 after nb_error, or the number of the signal that ended it. began: there is
 * a journal to be read. */
int nb_measuring_run(const struct nb_measuring *m, const char *dir, bool *began);

/* --list, or a plan without cases, which is shown with its reasons: true, with the exit code. An empty selection is a mistake, unless
 * it is this machine alone that refuses. */
bool nb_plan_only_shown(const struct nb_plan *plan, const struct nb_config *config, bool list, const char *format,
                        int *exit_code);

#endif
