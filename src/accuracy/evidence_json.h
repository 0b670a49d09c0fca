// SPDX-License-Identifier: Apache-2.0
/* Evidence as JSON, the same in the journal and in results.json (reports/schema/results.schema.json, "evidence"). */
#ifndef NB_EVIDENCE_JSON_H
#define NB_EVIDENCE_JSON_H

#include <cjson/cJSON.h>

#include "src/accuracy/evidence.h"

cJSON *nb_evidence_to_json(const struct nb_evidence *e);
int nb_evidence_from_json(struct nb_evidence *e, const cJSON *json); /* -1 after nb_error */

#endif
