// SPDX-License-Identifier: Apache-2.0
/* A timing as JSON (reports/schema/results.schema.json, "timing"). */
#ifndef NB_TIMING_JSON_H
#define NB_TIMING_JSON_H

#include <cjson/cJSON.h>

#include "src/record/timing.h"

cJSON *nb_timing_to_json(const struct nb_timing *t);
int nb_timing_from_json(struct nb_timing *t,
                        const cJSON *json); /* -1 after nb_error; t->reference becomes the caller's */

#endif
