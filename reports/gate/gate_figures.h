// SPDX-License-Identifier: Apache-2.0
/* A gate as figures: those of the whole, gate.json, and what other tools keep of it as metrics. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "src/core/format.h"
#include "src/core/json.h"
#include "src/gate/gate.h"

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
