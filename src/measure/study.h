// SPDX-License-Identifier: Apache-2.0
/* A study: questions put to kernels that need many calls and no timing (worst-case searches, probes), each kernel in a worker
 * process of its own, so that one that crashes or hangs costs its own answer and nothing else. */
#ifndef NB_STUDY_H
#define NB_STUDY_H

#include <cjson/cJSON.h>

#include "src/measure/job.h"

struct nb_study {
    const char *kind; /* of its jobs: "search", "probe" ... */
    const struct nb_case *cases;
    int n_cases;
    const char **plugins;
    int n_plugins;
    const char *max_width;
    const cJSON *options; /* handed to the worker as it is; may be null */
    double budget_s; /* for all cases: each is given its share of what is left as option "budget_s"; 0: no such thing */
    double silence_s;  /* a worker without a step forward (nb_worker_at) for longer is ended */
    const char *label; /* of the progress line: "searching" */
    bool side_by_side; /* one worker on each CPU: answers come in any order, though never two at a time */
};

/* For each case (in order, unless side_by_side) take(i, answer, arg), which owns the answer: what the worker said
 * ({"type":"answer", ..}); when it died {"status":"crashed","reason":".."}; when the budget was used up before its turn
 * {"status":"not_run","reason":".."}. Returns 0, -1 after nb_error, or the number of the signal that ended it. */
int nb_study_run(const struct nb_study *study, void (*take)(int i, cJSON *answer, void *arg), void *arg);

#endif
