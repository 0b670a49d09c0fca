// SPDX-License-Identifier: Apache-2.0
/* Relations that hold within the bound: another order of the columns, a constant added to the row. */
#ifndef NB_METAMORPHIC_WITHIN_H
#define NB_METAMORPHIC_WITHIN_H

#include "src/measure/metamorphic_trials.h"

void nb_trials_permute(struct nb_trials *t);
void nb_trials_shift(struct nb_trials *t);

#endif
