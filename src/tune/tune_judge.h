// SPDX-License-Identifier: Apache-2.0
/* Is an arrangement better than the default by more than noise? From launches alone: no clock, no kernel. */
#ifndef NB_TUNE_JUDGE_H
#define NB_TUNE_JUDGE_H

#include <stdbool.h>

#include "src/core/stats.h"
#include "src/tune/tune_topics.h"

/* What makes a difference: ln of 1 %. */
#define NB_TUNE_MARGIN 0.01

/* One kernel on one shape. */
struct nb_tune_trial {
    size_t shape;                       /* which of the topic's */
    int base_arm;                       /* what the default does here */
    double *gain[NB_TUNE_SETTINGS + 1]; /* by arm, of each launch: ln(time of the base arm / time of the arm) */
    size_t n_launches;
    int n_arms;
};

/* 95 %, on the logarithm; NaN bounds below six launches. */
struct nb_interval nb_tune_gain(const struct nb_tune_trial *trial, int arm);

struct nb_tune_verdict {
    int candidate;           /* -1: the default stays */
    struct nb_interval gain; /* of the best candidate, mean over the trials in which it differs; NaN: none differs */
    size_t n_trials;         /* in which it differs */
};
/* The candidate with the largest sum of gains, counting of each trial only what is beyond the margin with its whole interval, gain or
 * loss. It wins over the default when the mean gain is, too. */
void nb_tune_judge(const struct nb_tune_trial *trials, size_t n_trials, const struct nb_tune_candidate *candidates,
                   size_t n_candidates, struct nb_tune_verdict *out);

#endif
