// SPDX-License-Identifier: Apache-2.0
/* What the gate's self-test found, and what it leaves behind: DIR/samples.jsonl with every sample of every launch, so that the same
 * samples can be judged by other rules (tests/tools/rules.py), and DIR/trials.json with what the gate said of them. */
#ifndef NB_GATE_TRIALS_REPORT_H
#define NB_GATE_TRIALS_REPORT_H

#include <stdio.h>

#include "src/gate/gate_trials.h"

/* table or json. */
int nb_gate_print_trials(const struct nb_gate *g, const struct nb_trial_plan *plan, const struct nb_trials *trials,
                         const char *format, FILE *out);

/* ---- what is recorded ------------------------------------------------------------------------------------------------ */

struct nb_trials_record {
    FILE *samples;
    const struct nb_gate *g;
    char session[40]; /* when it began, which names it among others */
};

/* Begins DIR/samples.jsonl (reports/schema/samples.schema.json); an older one is written over. -1 after nb_error. */
int nb_trials_record_open(struct nb_trials_record *r, const struct nb_gate *g, const struct nb_trial_plan *plan,
                          const char *dir);
/* The plan's recorder; r stays where it is until the trials are over. */
struct nb_trial_recorder nb_trials_recorder(struct nb_trials_record *r);
/* Ends it. -1 after nb_error: not all could be written. */
int nb_trials_record_close(struct nb_trials_record *r);

/* DIR/trials.json (reports/schema/trials.schema.json). -1 after nb_error. */
int nb_trials_write(const struct nb_gate *g, const struct nb_trial_plan *plan, const struct nb_trials *t,
                    const char *dir);

#endif
