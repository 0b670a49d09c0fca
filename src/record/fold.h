// SPDX-License-Identifier: Apache-2.0
/* A journal to the results of its run. */
#pragma once

#include "src/record/record.h"

/* Folds a journal: medians over launches, paired ratios, statuses. Every planned case has a record: one without a line
 * of its own is "not_run". The first failures of each kernel in DIR/checks are added, as groups of their own. */
int nb_results_fold(struct nb_results *r, const char *dir);
