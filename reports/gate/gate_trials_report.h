// SPDX-License-Identifier: Apache-2.0
/* What the gate's self-test found. */
#ifndef NB_GATE_TRIALS_REPORT_H
#define NB_GATE_TRIALS_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "src/gate/gate_trials.h"

/* table or json. */
int nb_gate_print_trials(const struct nb_gate *g, const struct nb_trial_plan *plan, const struct nb_trials *trials,
                         const char *format, FILE *out);
/* Rates with their bounds. */
cJSON *nb_gate_trials_to_json(const struct nb_trial_plan *plan, const struct nb_trials *trials);

#endif
