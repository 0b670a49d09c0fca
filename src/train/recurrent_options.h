// SPDX-License-Identifier: Apache-2.0
/* What the recurrent workloads have in common: options, their bounds, the optimizer. */
#ifndef NB_TRAIN_RECURRENT_OPTIONS_H
#define NB_TRAIN_RECURRENT_OPTIONS_H

#include "src/train/workload.h"

struct nb_recurrent_defaults {
    int hidden, batch, sequence;
    double learning_rate;
};

/* Fills what is 0 and refuses what a recurrent workload cannot do: null or the reason. hidden must be a multiple of 16, so that
 * the other widths, which are shares of it, are whole; a sequence at least 4 long. defaults: a struct nb_recurrent_defaults. */
const char *nb_recurrent_complete(const void *defaults, struct nb_train_options *options);
/* Adam (Kingma & Ba 2015) with the rate of the options, as in all experiments of Zhang & Sennrich 2019. */
struct nb_optimizer nb_recurrent_optimizer(const void *defaults, const struct nb_train_options *options);

#endif
