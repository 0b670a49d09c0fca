// SPDX-License-Identifier: Apache-2.0
/* What an arm comes to in one round, a launch or a seed, alone or against another arm of the same round; NAN where it has no numbers. */
#ifndef NB_TRAINING_VALUES_H
#define NB_TRAINING_VALUES_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "src/train/train_results.h"

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
