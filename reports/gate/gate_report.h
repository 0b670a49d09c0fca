// SPDX-License-Identifier: Apache-2.0
/* What a gate found, what its self-test found, and what a calibration found: for people and for other tools, and every sample for other
 * rules to judge. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "src/core/format.h"
#include "src/core/json.h"
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

/* A gate as figures: those of the whole, gate.json, and what other tools keep of it as metrics. */

/* The gate as a whole: how many of each verdict, the worst of them, what it could have seen, and whether everything leans to one side. */
struct nb_gate_summary {
    const struct nb_gate *g; /* borrowed */
    size_t counts[NB_N_VERDICTS];
    enum nb_verdict verdict; /* the worst; NB_VERDICT_NONE: no case */
    size_t *order;           /* indices of the cases, the worst first; owned */
    size_t n_timed;
    struct nb_interval mean; /* geometric mean of the timed cases' ratios, with a 95 % interval; NaN: none was timed */
    double smallest_effect,
        largest_smallest; /* ratio - 1 that would be found: median over the timed cases, the worst */
    /* Cases whose ratio is inside the margin of failure: how many lean to the slow side, of how many. */
    size_t n_slower, n_null;
    size_t n_control_slower, n_control; /* the same of the controls, of all timed cases */
    struct nb_key_parts parts;
    cJSON *fingerprint; /* of this machine; owned */
};
void nb_gate_summary_init(struct nb_gate_summary *s, const struct nb_gate *g);
void nb_gate_summary_release(struct nb_gate_summary *s);

/* Was the case timed to a judgement? One that broke while it was timed has launches, but none. */
bool nb_gate_is_judged(const struct nb_gate_case *c);
/* Is a split so one-sided that a fair coin gives it in less than 1 % (two-sided)? */
bool nb_gate_leans(size_t k, size_t n);
/* "PASS" for all that pass: which way each passed is its case's. Null: no case. */
const char *nb_gate_overall(const struct nb_gate_summary *s);
/* What repeats a wrong kernel alone; owned. Null: there is none (functions have their names, the gate's own figures the gate). */
char *nb_gate_replay(const struct nb_gate *g, const struct nb_gate_case *c);

/* Of struct nb_gate_plan and its rule: what gate.json says, and trials.json. */
extern const struct nb_member nb_gate_plan_members[], nb_gate_rule_members[];

/* reports/schema/gate.schema.json; ratios as metrics, which travel between machines, where times do not. */
cJSON *nb_gate_document(const struct nb_gate_summary *s);
cJSON *nb_gate_bencher(const struct nb_gate_summary *s);
cJSON *nb_gate_benchmark_action(const struct nb_gate_summary *s);
