// SPDX-License-Identifier: Apache-2.0
/* A gradient is linear in what comes in. */
#ifndef NB_METAMORPHIC_GRADIENT_H
#define NB_METAMORPHIC_GRADIENT_H

#include "src/measure/metamorphic_trials.h"

/* Judges NB_REL_SCALE of a backward case: dy and dresidual_out times 2^k give dx times 2^k, wherever both are normal numbers. */
void nb_trials_scale_gradient(struct nb_trials *t);

#endif
