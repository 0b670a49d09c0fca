// SPDX-License-Identifier: Apache-2.0
/* What a gate found, what its self-test found, and what a calibration found: for people and for other tools, and every sample for other
 * rules to judge. */
#pragma once

#include <stdio.h>

#include "src/gate/calibration.h"
#include "src/gate/gate.h"
#include "src/gate/gate_trials.h"

/* ---- a gate ---- */

/* table, json (reports/schema/gate.schema.json), markdown, junit, bencher, benchmark_action. */
extern const char *const nb_gate_formats[];
int nb_gate_print(const struct nb_gate *g, const char *format, FILE *out);
/* DIR/gate.json, gate.md, gate.xml (JUnit), gate.bencher.json and gate.benchmark_action.json, each under its name only when it is whole. */
int nb_gate_write(const struct nb_gate *g, const char *dir);
/* Removes these files and samples.jsonl of an earlier gate, so that none is read as the result of one that ends early. */
void nb_gate_clear(const char *dir);

/* ---- samples ---- */

/* DIR/samples.jsonl: every launch of the gate with its samples, one line each, from now on. -1 after nb_error. */
int nb_gate_record(struct nb_gate *g, const char *dir);
/* -1 after nb_error: not all was written. */
int nb_gate_record_end(struct nb_gate *g);

/* ---- the self-test ---- */

struct nb_trials_record {
    FILE *samples;
    const struct nb_gate *g;
    const struct nb_trials *trials;
    char session[40]; /* when it began, which names it among others */
};
/* Of a self-test: verdicts go to DIR/samples.jsonl (reports/schema/samples.schema.json), too; r and t stay where they are until the trials are
 * over. -1 after nb_error. */
int nb_trials_record_open(struct nb_trials_record *r, struct nb_gate *g, struct nb_trial_plan *plan,
                          const struct nb_trials *t, const char *dir);
/* Ends it, and writes DIR/trials.json (reports/schema/trials.schema.json). -1 after nb_error: not all could be written. */
int nb_trials_record_close(struct nb_trials_record *r, const struct nb_trial_plan *plan, const char *dir);
/* Rates with exact bounds, false alarms of the copy and what is found of each injected slowdown, as table or json. */
int nb_gate_print_trials(const struct nb_gate *g, const struct nb_trial_plan *plan, const struct nb_trials *trials,
                         const char *format, FILE *out);

/* ---- a calibration ---- */

/* Noise by group, what can be gated, and what a gate takes that finds the effect, by simulated gates: to out as table or json and, where
 * dir is not null, to DIR/calibration.json (reports/schema/calibration.schema.json). -1 after nb_error. */
int nb_calibration_report(const struct nb_calibration_run *run, const char *config, double effect, const char *format,
                          FILE *out, const char *dir);
