// SPDX-License-Identifier: Apache-2.0
/* Sums of what is sure, and the interval of the mean. */
#include "src/tune/tune_judge.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/log.h"
#include "src/measure/paired.h"

struct nb_interval nb_tune_gain(const struct nb_tune_trial *trial, int arm) {
    return nb_over_launches(trial->gain[arm], trial->n_launches, 0.95);
}

/* What is beyond the margin for sure; 0 otherwise. */
static double sure_gain(const struct nb_tune_trial *trial, int arm) {
    const struct nb_interval gain = nb_tune_gain(trial, arm);
    return gain.low > NB_TUNE_MARGIN || gain.high < -NB_TUNE_MARGIN ? gain.value : 0;
}

static double score(const struct nb_tune_trial *trials, size_t n, const struct nb_tune_candidate *candidate) {
    double sum = 0;
    for (size_t t = 0; t < n; t++) {
        const int arm = candidate->arm[trials[t].shape];
        if (arm != trials[t].base_arm && trials[t].n_launches > 0) sum += sure_gain(&trials[t], arm);
    }
    return sum;
}

/* Of each launch the mean over the trials in which the candidate is not what the default is. */
static struct nb_interval mean_gain(const struct nb_tune_trial *trials, size_t n,
                                    const struct nb_tune_candidate *candidate, size_t *n_differ) {
    size_t n_launches = 0;
    for (size_t t = 0; t < n; t++) n_launches = trials[t].n_launches > n_launches ? trials[t].n_launches : n_launches;
    double *means = nb_alloc(n_launches + 1, sizeof *means);
    for (size_t l = 0; l < n_launches; l++) {
        size_t counted = 0;
        for (size_t t = 0; t < n; t++) {
            const int arm = candidate->arm[trials[t].shape];
            if (arm == trials[t].base_arm || l >= trials[t].n_launches || !isfinite(trials[t].gain[arm][l])) continue;
            means[l] += trials[t].gain[arm][l];
            counted++;
        }
        means[l] = counted ? means[l] / (double)counted : (double)NAN;
        if (counted > *n_differ) *n_differ = counted;
    }
    const struct nb_interval result = nb_over_launches(means, n_launches, 0.95);
    free(means);
    return result;
}

void nb_tune_judge(const struct nb_tune_trial *trials, size_t n_trials, const struct nb_tune_candidate *candidates,
                   size_t n_candidates, struct nb_tune_verdict *out) {
    double best = -INFINITY; /* score of the best so far */
    *out = (struct nb_tune_verdict){.candidate = -1, .gain = {NAN, NAN, NAN}};
    for (size_t c = 0; c < n_candidates; c++) {
        size_t n_differ = 0;
        const struct nb_interval gain = mean_gain(trials, n_trials, &candidates[c], &n_differ);
        const double own = score(trials, n_trials, &candidates[c]);
        /* Of two that are as good where it is sure, the one that leaves more of what is not sure alone. */
        const bool as_good = own >= best - 1e-12, surer = !(gain.low <= out->gain.low);
        if (n_differ == 0 || !as_good || (own <= best + 1e-12 && !surer)) continue;
        best = own;
        out->gain = gain;
        out->n_trials = n_differ;
        out->candidate = own > 0 && gain.low > NB_TUNE_MARGIN ? (int)c : -1;
    }
}
