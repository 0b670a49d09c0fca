// SPDX-License-Identifier: Apache-2.0
/* The page of a run of claims as Markdown: the verdicts, then the evidence. */
#ifndef NB_CLAIMS_MARKDOWN_H
#define NB_CLAIMS_MARKDOWN_H

#include <cjson/cJSON.h>

#include "reports/figures/plots.h"

/* figures: pictures to be linked, or null. */
void nb_claims_markdown(const cJSON *document, const struct nb_figures *figures, struct nb_strbuf *out);

#endif
