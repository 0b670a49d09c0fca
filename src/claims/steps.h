// SPDX-License-Identifier: Apache-2.0
/* Claims about whole steps: a step is the list of its operations (src/models), at the source's size, and what a norm saves of it follows from the
 * norm's own ratio. Beside it, at which cost of dispatch a published cut would be reached, here and on the source's GPU (src/models/step.h
 * has the model). */
#pragma once

#include <cjson/cJSON.h>

#include "src/claims/experiment.h"

/* Appends to the "steps" section of claims.json what the experiment, of kind step, came to: an entry for each model, number of tokens, norm and style, unless
 * another claim's is there already; its published rows are added to that.
 *   {"model","title","source","training","tokens","norm","style","reason",
 *    "parts":[{"part","seconds":{value,low,high},"norms":{..},"norm_share":{..},"cut":{..},"norm_cut":{..}}],
 *    "dispatch":[{"row","part","gpu","published":{..},"needed_here_us":{..},"needed_there_us":{..},"limit","sentence"}]} */
void nb_steps_to_json(const struct nb_experiment *e, const struct nb_claims_measured *m, cJSON *models);
