// SPDX-License-Identifier: Apache-2.0
/* A training experiment, which PyTorch does, and the figures of its arms and pairs of arms. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "src/claims/finding.h"
#include "src/core/json.h"
#include "src/models/study.h"

struct nb_training {
    char *workload_name, *measure_name, *common;
    char *on_cpu;                             /* words of all arms on a CPU, such as a smaller batch; or null */
    bool left_out;                            /* by --quick */
    char *needed;                             /* why PyTorch did not answer; null: it did, or was not asked yet */
    struct nb_strings words;                  /* of each arm, as the file has them */
    const struct nb_model_workload *workload; /* null: there is none of the name */
    enum nb_torch_measure measure;
    int steps, seeds;        /* of a course; seeds 0: as usual */
    struct nb_strings arms;  /* the one text of each, of the device that they run on */
    struct nb_findings tags; /* of each arm: its axes, in a finding of its own */
    struct nb_sides *pairs;  /* of arms alike on every axis but those that both selectors name */
    size_t n_pairs;
};

/* Appends what was measured. results null: each figure is missing, with the reason why. */
void nb_training_find(const struct nb_training *t, const struct nb_torch_results *results, const char *why,
                      struct nb_findings *out);

/* Of the list of numbers that the context names: its mean, and that over the other arm's; NaN where a step has none. */
nb_torch_value nb_training_mean_of, nb_training_mean_ratio;
/* The layers' values of curves in one record: "layer3.attention.input" is layer 3 of "attention.input". Owned, *n of them; null where the
 * place is not there. last: the last record instead of the first. */
double *nb_training_layers(const cJSON *arm, const char *place, bool gradient, bool last, int *n);

/* What PyTorch answered, as the "training" section of claims.json, from which tables and curves are drawn:
 *   {"torch":"2.15.0","device":"cpu" or the GPU's name,
 *    "steps":[{"workload","arm","norm","style","launches","seconds":{value,low,high},"forward":{..},"backward":{..},"update":{..},"against","cut":{..},"threads"}],
 *    "inference": as steps,
 *    "memory":[{"workload","arm","norm","style","launches","peak_bytes":{..},"kept_bytes","parameter_bytes"}],
 *    "courses":[{"workload","arm","norm","style","steps","seeds","final_loss":{..},"loss":{"steps":[..],"median":[..]}}]}
 * cut: of the step of RMSNorm against the arm that is the same with LayerNorm; medians are over seeds. */
cJSON *nb_training_to_json(const struct nb_torch_results *results);
/* What RMSNorm saves of the models here, from that section, as the files of configs/models/readings have it; null: no steps of both norms were
 * timed. date: "2026-11-27". */
cJSON *nb_training_readings(const cJSON *training, const char *machine, const char *date);
