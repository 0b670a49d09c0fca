// SPDX-License-Identifier: Apache-2.0
/* Results -> what a person or another tool reads. A renderer is one file, render_NAME.c, which the build lists; it defines
 * `const struct nb_renderer nb_renderer_NAME[]`, its formats, ended by an empty one. */
#ifndef NB_REPORT_H
#define NB_REPORT_H

#include <stdio.h>

#include "src/record/comparison.h"
#include "src/record/record.h"

struct nb_renderer {
    const char *name, *summary;                                 /* --format=NAME */
    int (*render)(const struct nb_results *results, FILE *out); /* 0, or -1 after nb_error */
};
const struct nb_renderer *nb_renderer_find(const char *name); /* null */
const struct nb_renderer *nb_renderer_at(size_t i);           /* by name; null behind the last */

/* Writes DIR/plots/ (data, gnuplot scripts, SVG and PNG where gnuplot is there) and DIR/index.html. */
int nb_plots_write(const struct nb_results *results, const char *dir);
int nb_html_write(const struct nb_results *results, const char *dir);

/* Two runs side by side as table, markdown or json (reports/schema/compare.schema.json). -1 after nb_error. */
int nb_compare_print(const struct nb_comparison *c, const char *format, FILE *out);

/* A tuning for a person: the fields, and for each question what was measured. json: the file of `normbench tune` (nb_tune_run_to_json),
 * or the choice of a process (nb_tuning_choice_to_json). */
void nb_tune_print(const cJSON *json, struct nb_strbuf *out);

#endif
