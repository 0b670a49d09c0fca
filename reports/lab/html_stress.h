// SPDX-License-Identifier: Apache-2.0
/* Parts of the precision page, each from stress.json (reports/schema/stress.schema.json), which may be partial. */
#ifndef NB_HTML_STRESS_H
#define NB_HTML_STRESS_H

#include <cjson/cJSON.h>

#include "src/core/text.h"

void nb_html_grades(const cJSON *stress, struct nb_strbuf *out);
void nb_html_frontiers(const cJSON *stress, struct nb_strbuf *out);
void nb_html_worst(const cJSON *stress, struct nb_strbuf *out);
void nb_html_bugs(const cJSON *stress, struct nb_strbuf *out);
/* Command lines that show again what set a grade below B in the declared range, and what failed as a study. */
void nb_html_replays(const cJSON *stress, struct nb_strbuf *out);

/* What their tables are made of: a text of an object or "", a cell of a kind ("k" name, "t" text, "n" number), a number in one. */
const char *nb_stress_cell_text(const cJSON *object, const char *name);
void nb_stress_cell(struct nb_strbuf *out, const char *kind, const char *text);
void nb_stress_number(struct nb_strbuf *out, double value, int digits);

#endif
