// SPDX-License-Identifier: Apache-2.0
/* Sums that a normalized row has by definition. */
#ifndef NB_METAMORPHIC_RESIDUALS_H
#define NB_METAMORPHIC_RESIDUALS_H

#include "src/measure/metamorphic_trials.h"

/* Judges NB_REL_SQUARES and NB_REL_SUM. The units: (h + 8) u for h roundings in a chain of the statistics' arithmetic, times what the
 * declared variance loses with rho = |mean| / sigma (two-pass nothing, updating 1 + rho, one pass 1 + rho^2), 2 u of the store, and the
 * declared error of an estimate; the sum: (h + 8) u (1 + rho) + u of the store, of the largest |y|. */
void nb_trials_residuals(struct nb_trials *t);

#endif
