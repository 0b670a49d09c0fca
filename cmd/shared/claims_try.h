// SPDX-License-Identifier: Apache-2.0
/* From claims to a folder with verdicts: the plans behind them are measured, experiments run, pages written. */
#ifndef NB_CLAIMS_TRY_H
#define NB_CLAIMS_TRY_H

#include <stdbool.h>

#include "cmd/shared/options.h"
#include "cmd/shared/run_plan.h"
#include "src/claims/claims.h"
#include "src/train/train_results.h"

struct nb_claims_options {
    struct nb_plan_request request;
    struct nb_texts patterns;
    struct nb_output_options output;
    const char *explain;
    bool quick, strict;
    double train_budget_s; /* NaN: the usual one, and none with --quick */
    const char *train_text;
    int argc;
    char **argv; /* as given, or of the run that is resumed */
};

/* Is there a journal in the folder? */
bool nb_claims_has_journal(const char *dir);
/* Tries the claims, whose blocks move to the plans, into dir. Returns the exit code. */
int nb_claims_run(const struct nb_claims_options *o, struct nb_claims *claims, const char *dir);

/* The training part of a run of claims, in DIR/training/. */

struct nb_claims_trained {
    struct nb_train_results results;
    bool there;      /* something was asked for, and the time allowed was not 0 */
    const char *why; /* nothing was trained */
};
/* The options of the run that is resumed; -1 without nb_error: no training began there. */
int nb_claims_training_argv(const char *dir, struct nb_journaled_argv *saved);

#endif
