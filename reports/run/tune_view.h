// SPDX-License-Identifier: Apache-2.0
/* A tuning for a person: the fields, and for each question what was measured. */
#ifndef NB_TUNE_VIEW_H
#define NB_TUNE_VIEW_H

#include <cjson/cJSON.h>

#include "src/core/text.h"

/* json: the file of `normbench tune` (nb_tune_run_to_json), or the choice of a process (nb_tuning_choice_to_json). */
void nb_tune_print(const cJSON *json, struct nb_strbuf *out);

#endif
