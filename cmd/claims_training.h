// SPDX-License-Identifier: Apache-2.0
/* The training part of a run of claims: DIR/training/. */
#ifndef NB_CLAIMS_TRAINING_H
#define NB_CLAIMS_TRAINING_H

#include "cmd/claims_try.h"
#include "cmd/run_plan.h"
#include "src/train/train_results.h"

struct nb_claims_trained {
    struct nb_train_results results;
    bool there;      /* something was asked for, and the time allowed was not 0 */
    const char *why; /* nothing was trained */
};
/* Trains what the claims ask for. 0, -1 after nb_error, or the number of the signal that ended it. */
int nb_claims_train(const struct nb_claims_options *o, const struct nb_claims *claims, const char *dir,
                    struct nb_claims_trained *out);
/* The options of the run that is resumed; -1 without nb_error: no training began there. */
int nb_claims_training_argv(const char *dir, struct nb_journaled_argv *saved);

#endif
