// SPDX-License-Identifier: Apache-2.0
/* What a training experiment asks for, and the figures that its arms and pairs of arms come to. */
#ifndef NB_TRAINING_H
#define NB_TRAINING_H

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

#endif
