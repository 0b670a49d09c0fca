// SPDX-License-Identifier: Apache-2.0
/* One launch of a trial from outside: a worker process times one kernel on one shape under several tunings, interleaved. */
#ifndef NB_TUNE_LAUNCH_H
#define NB_TUNE_LAUNCH_H

#include <stdbool.h>

#include "src/core/case.h"
#include "src/core/tuning.h"
#include "src/tune/tune_topics.h"

struct nb_tune_request {
    const struct nb_case *c;
    const struct nb_tuning *arms;
    int n_arms, base_arm;
    int launch;
    int blocks;
    double sample_ms;
};

struct nb_tune_answer {
    double gain[NB_TUNE_SETTINGS + 1]; /* ln(time of the base arm / time of the arm), median over blocks */
    bool differs;     /* an arm's output has other bits than the first one's: a tuning must not change any */
    char reason[200]; /* why there are no gains; "" when there are */
};

/* 0, -1 after nb_error (no process can be started), or the number of the signal that ended it. */
int nb_tune_launch(const struct nb_tune_request *q, struct nb_tune_answer *out);

#endif
