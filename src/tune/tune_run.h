// SPDX-License-Identifier: Apache-2.0
/* The whole measurement: every topic's trials, launches round robin over all of them, then a verdict for each topic. */
#ifndef NB_TUNE_RUN_H
#define NB_TUNE_RUN_H

#include <cjson/cJSON.h>

#include "src/tune/tune_judge.h"
#include "src/tune/tune_topics.h"

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
