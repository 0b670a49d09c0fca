// SPDX-License-Identifier: Apache-2.0
/* Figures of precision: from stress.json, and from the depth curve of an emulated design. */
#ifndef NB_PLOT_STRESS_H
#define NB_PLOT_STRESS_H

#include <cjson/cJSON.h>

#include "reports/figures/plots.h"
#include "reports/lab/studies.h"

/* Error over scale and rho, one figure a kernel, one panel a dtype. meta: whose footer the figures have. */
void nb_plot_maps(const struct nb_results *meta, const struct nb_studies *studies, struct nb_figures *figures);
/* Error against rho, n, eps and scale, one figure an op, one panel a dtype, one line a kernel. */
void nb_plot_sweeps(const struct nb_results *meta, const struct nb_studies *studies, struct nb_figures *figures);
/* What `normbench emulate --depth --format json` prints: {"designs": [{"design":.., "depth": {"gain_u": [..], "residual_u": [..]}}
 * ..]}, figures after each block. */
void nb_plot_depth(const struct nb_results *meta, const cJSON *emulated, struct nb_figures *figures);

/* All of a stress run. stress and depth may be null. */
void nb_stress_figures_init(struct nb_figures *figures, const cJSON *stress, const cJSON *depth,
                            const struct nb_results *results);

#endif
