// SPDX-License-Identifier: Apache-2.0
/* The whole measurement: every topic's trials, launches round robin over all of them, then a verdict for each topic: is an arrangement better
 * than the default by more than noise? */
#ifndef NB_TUNE_RUN_H
#define NB_TUNE_RUN_H

#include <cjson/cJSON.h>

#include "src/core/case.h"
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

struct nb_tune_verdict {
    int candidate;           /* -1: the default stays */
    struct nb_interval gain; /* of the best candidate, mean over the trials in which it differs; NaN: none differs */
    size_t n_trials;         /* in which it differs */
};
/* The candidate with the largest sum of gains, counting of each trial only what is beyond the margin with its whole interval, gain or
 * loss. It wins over the default when the mean gain is, too. */
void nb_tune_judge(const struct nb_tune_trial *trials, size_t n_trials, const struct nb_tune_candidate *candidates,
                   size_t n_candidates, struct nb_tune_verdict *out);

enum { NB_TUNE_TRIALS = 4 * NB_TUNE_SHAPES, NB_TUNE_TOPICS = 8 };

struct nb_tune_outcome {
    const struct nb_tune_topic *topic;
    struct nb_tune_shape shapes[NB_TUNE_SHAPES];
    struct nb_tuning arms[NB_TUNE_SETTINGS + 1];
    struct nb_tune_candidate candidates[NB_TUNE_CANDIDATES];
    struct nb_case cases[NB_TUNE_TRIALS]; /* of each trial */
    struct nb_tune_trial trials[NB_TUNE_TRIALS];
    size_t n_shapes, n_candidates, n_trials;
    int n_arms;
    struct nb_tune_verdict verdict;
    char reason[240]; /* why nothing, or not all, was measured; "" */
};

struct nb_tune_options {
    int launches, blocks;
    double sample_ms;
};

struct nb_tune_run {
    struct nb_tuning base, tuned; /* the defaults; what the verdicts make of them */
    struct nb_tune_outcome *topics;
    size_t n_topics;
    struct nb_tune_options options;
    double elapsed_s;
    size_t n_measured; /* topics with a trial */
};

/* -1 after nb_error, or the number of the signal that ended it; then there are no verdicts. The kernels must be loaded. */
int nb_tune_run(struct nb_tune_run *run, const struct nb_tune_options *options);
void nb_tune_run_release(struct nb_tune_run *run);

/* The file that is kept (reports/schema/tuning.schema.json); measured: when, UTC. */
cJSON *nb_tune_run_to_json(const struct nb_tune_run *run, const char *measured);

#endif
