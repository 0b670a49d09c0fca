// SPDX-License-Identifier: Apache-2.0
/* A training experiment, and the figures of its arms and pairs of arms. */
#ifndef NB_TRAINING_H
#define NB_TRAINING_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "src/claims/fields.h"
#include "src/claims/finding.h"
#include "src/train/train_results.h"

struct nb_training_pair { /* arms alike on every axis but those that both selectors name */
    struct nb_selector of, against;
};
struct nb_training {
    char *workload_name, *measure_name, *common;
    struct nb_strings words;            /* of each arm, as the file has them */
    const struct nb_workload *workload; /* null: this build has none of the name */
    enum nb_train_measure measure;
    double steps, seeds;     /* of a course; seeds 0: as usual */
    char **arms;             /* canonical texts */
    struct nb_findings tags; /* of each arm: its axes, in a finding of its own */
    struct nb_training_pair *pairs;
    size_t n_pairs;
};

/* Fills workload, measure, arms and tags from the names. Null, or what is wrong with the file; text goes to reason. */
const char *nb_training_complete(struct nb_training *t, char *reason, size_t n);
/* Appends what was measured. results null: each figure is missing, with the reason why. */
void nb_training_find(const struct nb_training *t, const struct nb_train_results *results, const char *why,
                      struct nb_findings *out);
void nb_training_release(struct nb_training *t);

/* What an arm comes to in one round, a launch or a seed, alone or against another arm of the same round; NAN where it has no numbers. */

/* Of a list of the arm, such as "norm": the seconds of each block. */
double nb_training_median(const cJSON *arm, const char *name);

/* Of a part of the steps, which the context names: exp of the median over blocks of ln(arm / against); the norm's share; the median. */
nb_train_value nb_training_time_ratio, nb_training_norm_share, nb_training_median_time;
/* Of the number, or the list of numbers, that the context names: itself, over the other arm's; its mean, over the other arm's. */
nb_train_value nb_training_number, nb_training_number_ratio, nb_training_mean_of, nb_training_mean_ratio;
/* Steps without a finite loss or gradient among those wanted. */
nb_train_value nb_training_failed_share;

/* The layers' values of curves in one record: "layer3.attention.input" is layer 3 of "attention.input". Owned, *n of them; null where the
 * place is not there. last: the last record in place of the first. */
double *nb_training_layers(const cJSON *arm, const char *place, bool gradient, bool last, int *n);

enum nb_training_layers_what {
    NB_LAYERS_LAST,           /* the last layer's value */
    NB_LAYERS_DRIFT,          /* the first layer's and the last's: the larger over the smaller */
    NB_LAYERS_SPREAD,         /* the largest over the smallest */
    NB_LAYERS_FIRST_OVER_LAST /* the first layer's over the last's */
};
struct nb_training_layers_question {
    const char *place;
    bool gradient, last; /* last: at the end of the training */
    enum nb_training_layers_what what;
};
nb_train_value nb_training_layers_value; /* the context is such a question */

#endif
