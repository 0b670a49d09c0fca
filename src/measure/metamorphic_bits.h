// SPDX-License-Identifier: Apache-2.0
/* Relations that keep every bit: place of a row, size of the batch, ranges, repetition, sign. */
#ifndef NB_METAMORPHIC_BITS_H
#define NB_METAMORPHIC_BITS_H

#include "src/measure/metamorphic_trials.h"

void nb_trials_row_order(struct nb_trials *t);
void nb_trials_batch(struct nb_trials *t);
void nb_trials_ranges(struct nb_trials *t);
void nb_trials_twice(struct nb_trials *t);
void nb_trials_negate(struct nb_trials *t);

#endif
