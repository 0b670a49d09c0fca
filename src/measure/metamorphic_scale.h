// SPDX-License-Identifier: Apache-2.0
/* Scaling by powers of two: what it promises, and how far it holds. */
#ifndef NB_METAMORPHIC_SCALE_H
#define NB_METAMORPHIC_SCALE_H

#include "src/measure/metamorphic_trials.h"

/* Judges NB_REL_SCALE and scans for the powers up and down to which the bits stay. */
void nb_trials_scale(struct nb_trials *t);

#endif
