// SPDX-License-Identifier: Apache-2.0
/* Amdahl's law for norms: what a step gains is the norm's share of it times what the norm saves. The paper's rows, and the steps that
 * were measured here. */
#ifndef NB_CLAIMS_AMDAHL_H
#define NB_CLAIMS_AMDAHL_H

#include <cjson/cJSON.h>

#include "reports/figures/plots.h"

void nb_claims_amdahl_figure(struct nb_figures *figures, const cJSON *document, const struct nb_results *meta);

#endif
