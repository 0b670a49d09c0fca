// SPDX-License-Identifier: Apache-2.0
/* The results that a run has left in its folder. */
#ifndef NB_RUN_FOLDER_H
#define NB_RUN_FOLDER_H

#include <stdbool.h>

#include "src/record/record.h"

/* results.json; folds the journal when results.json is missing or older. */
int nb_results_read(struct nb_results *r, const char *dir);
bool nb_results_outdated(const char *dir); /* the journal is newer than results.json, or alone */

#endif
