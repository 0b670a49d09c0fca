// SPDX-License-Identifier: Apache-2.0
/* What a gate found, for people and for other tools. */
#ifndef NB_GATE_REPORT_H
#define NB_GATE_REPORT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "src/gate/gate.h"

/* table, json (reports/schema/gate.schema.json), markdown, junit, bencher. */
bool nb_gate_format_known(const char *format);
int nb_gate_print(const struct nb_gate *g, const char *format, FILE *out);
/* DIR/gate.json, gate.md, gate.xml (JUnit) and gate.bencher.json, each under its name only when it is whole. */
int nb_gate_write(const struct nb_gate *g, const char *dir);

/* DIR/samples.jsonl: every launch with its samples, one line each. Null after nb_error. */
FILE *nb_gate_samples_open(const char *dir);
void nb_gate_record_sample(FILE *samples, const struct nb_gate_case *c, enum nb_gate_stage stage, const cJSON *line);

#endif
