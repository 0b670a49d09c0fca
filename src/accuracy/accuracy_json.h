// SPDX-License-Identifier: Apache-2.0
/* An accuracy and the evidence of a grade as JSON, the same in the journal and in results.json (reports/schema/results.schema.json,
 * "accuracy" and "evidence"). */
#ifndef NB_ACCURACY_JSON_H
#define NB_ACCURACY_JSON_H

#include <cjson/cJSON.h>

#include "src/accuracy/accuracy.h"
#include "src/accuracy/evidence.h"

/* number: of the output judged; its name and unit roundoff are written beside the figures that count in u. */
cJSON *nb_accuracy_to_json(const struct nb_accuracy *a, enum nb_number number);
int nb_accuracy_from_json(struct nb_accuracy *a, const cJSON *json); /* -1 after nb_error */

cJSON *nb_evidence_to_json(const struct nb_evidence *e);
int nb_evidence_from_json(struct nb_evidence *e, const cJSON *json); /* -1 after nb_error */

#endif
