// SPDX-License-Identifier: Apache-2.0
/* The results that a run has left in its folder. */
#pragma once

#include <stdbool.h>

#include "src/record/record.h"

/* results.json; folds the journal when results.json is missing or older. */
int nb_results_read(struct nb_results *r, const char *dir);
bool nb_results_outdated(const char *dir); /* the journal is newer than results.json, or alone */
