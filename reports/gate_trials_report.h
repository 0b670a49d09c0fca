// SPDX-License-Identifier: Apache-2.0
/* What the gate's self-test found. */
#ifndef NB_GATE_TRIALS_REPORT_H
#define NB_GATE_TRIALS_REPORT_H

#include <stdio.h>

#include "src/gate_trials.h"

/* table or json. */
int nb_gate_print_trials(const struct nb_gate *g, const struct nb_trial_plan *plan, const struct nb_trials *trials,
                         const char *format, FILE *out);

#endif
