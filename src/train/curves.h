// SPDX-License-Identifier: Apache-2.0
/* How wide activations and gradients are while a model trains: the standard deviation of each tensor that the model names, in the
 * steps that are recorded. */
#ifndef NB_TRAIN_CURVES_H
#define NB_TRAIN_CURVES_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "src/train/workload.h"

struct nb_curve {
    char place[96]; /* "layer3.attention.input" */
    bool gradient;  /* of the loss by it */
    double *std;    /* by record; NaN where the place was not told of */
};
struct nb_curves {
    struct nb_curve *items;
    int n;
    int *steps; /* by record */
    int n_records, most_records;
    double scale;                /* of the loss, which gradients carry */
    struct nb_observer observer; /* for nb_model.observer; context is this struct, which must stay where it is */
};
void nb_curves_init(struct nb_curves *c, int most_records);
/* A step to be recorded begins. */
void nb_curves_begin(struct nb_curves *c, int step, double loss_scale);
/* [{"place","gradient","std":[..]}] and the steps. */
void nb_curves_to_json(const struct nb_curves *c, cJSON *json);
void nb_curves_release(struct nb_curves *c);

/* Population standard deviation, two passes in double; NaN and infinities go through. */
double nb_standard_deviation(const float *values, int64_t n);

#endif
