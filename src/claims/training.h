// SPDX-License-Identifier: Apache-2.0
/* A training experiment, and the figures of its arms and pairs of arms. */
#ifndef NB_TRAINING_H
#define NB_TRAINING_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "src/claims/finding.h"
#include "src/core/json_fields.h"
#include "src/train/train_study.h"

struct nb_training {
    char *workload_name, *measure_name, *common;
    struct nb_strings quick; /* with --quick these are the arms; none: --quick leaves it out */
    bool is_quick, left_out;
    struct nb_strings words;            /* of each arm, as the file has them */
    const struct nb_workload *workload; /* null: this build has none of the name */
    enum nb_train_measure measure;
    double steps, seeds;     /* of a course; seeds 0: as usual */
    char **arms;             /* canonical texts */
    struct nb_findings tags; /* of each arm: its axes, in a finding of its own */
    struct nb_sides *pairs;  /* of arms alike on every axis but those that both selectors name */
    size_t n_pairs;
};

/* Appends what was measured. results null: each figure is missing, with the reason why. */
void nb_training_find(const struct nb_training *t, const struct nb_train_results *results, const char *why,
                      struct nb_findings *out);

/* Of a list of the arm, such as "norm": the seconds of each block. NaN where it has none. */
double nb_training_median_of(const cJSON *arm, const char *name);
/* Of the list of numbers that the context names: its mean, and that over the other arm's; NaN where a step has none. */
nb_train_value nb_training_mean_of, nb_training_mean_ratio;
/* The layers' values of curves in one record: "layer3.attention.input" is layer 3 of "attention.input". Owned, *n of them; null where the
 * place is not there. last: the last record in place of the first. */
double *nb_training_layers(const cJSON *arm, const char *place, bool gradient, bool last, int *n);

/* What was trained, as the "training" section of claims.json, from which tables and curves are drawn:
 *   {"steps":[{"workload","arm","launches","seconds":{value,low,high},"passes":{..},"norm_share":{..}}],
 *    "memory":[{"workload","arm","launches","peak_bytes":{..},"kept_bytes","parameter_bytes"}],
 *    "courses":[{"workload","arm","steps","seeds","final_loss":{..},"loss":{"steps":[..],"median":[..]},
 *                "layers":[{"site","gradient","start":[by layer],"end":[..]}],
 *                "last_layer":[{"site","gradient","steps":[..],"std":[..]}]}]}
 * norm_share is of passes; medians are over seeds. */
cJSON *nb_training_to_json(const struct nb_train_results *results);

#endif
