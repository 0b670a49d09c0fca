// SPDX-License-Identifier: Apache-2.0
/* What was trained for claims, for people: tables of steps and memory, curves of losses and of how wide tensors are by layer; all from the
 * "training" section of claims.json (src/claims/training.h). */
#ifndef NB_CLAIMS_TRAINING_REPORT_H
#define NB_CLAIMS_TRAINING_REPORT_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "reports/figures/plots.h"
#include "src/core/text.h"

/* Nothing where nothing was trained. */
void nb_claims_training_tables(const cJSON *document, bool html, struct nb_strbuf *out); /* html: else Markdown */
void nb_claims_training_figures(struct nb_figures *figures, const cJSON *document, const struct nb_results *meta);

#endif
