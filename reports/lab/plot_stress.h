// SPDX-License-Identifier: Apache-2.0
/* Figures of precision: from stress.json, and from the depth curve of an emulated design. */
#ifndef NB_PLOT_STRESS_H
#define NB_PLOT_STRESS_H

#include <cjson/cJSON.h>

#include "reports/figures/plots.h"

/* All of a stress run. stress and depth may be null. */
void nb_stress_figures_init(struct nb_figures *figures, const cJSON *stress, const cJSON *depth,
                            const struct nb_results *results);

#endif
