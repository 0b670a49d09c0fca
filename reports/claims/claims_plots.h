// SPDX-License-Identifier: Apache-2.0
/* Pictures of a run of claims. */
#ifndef NB_CLAIMS_FIGURES_H
#define NB_CLAIMS_FIGURES_H

#include <cjson/cJSON.h>

#include "reports/figures/plots.h"

/* Cut against working set and row length, and the Amdahl curve with the paper's rows. */
void nb_claims_figures_init(struct nb_figures *figures, const cJSON *document);

#endif
