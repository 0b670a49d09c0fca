// SPDX-License-Identifier: Apache-2.0
/* From claims to a folder with verdicts: the plans behind them are measured, experiments run, pages written. */
#ifndef NB_CLAIMS_TRY_H
#define NB_CLAIMS_TRY_H

#include <stdbool.h>

#include "cmd/output_options.h"
#include "cmd/run_measure.h"
#include "src/claims/claims.h"

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

#endif
