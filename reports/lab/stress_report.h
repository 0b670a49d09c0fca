// SPDX-License-Identifier: Apache-2.0
/* The page and the pictures of a stress run: DIR/precision.html, which needs nothing else, and DIR/precision-plots/. */
#ifndef NB_STRESS_REPORT_H
#define NB_STRESS_REPORT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "src/record/record.h"

#define NB_STRESS_PLOTS "precision-plots"
#define NB_DEPTH_FILE "depth.json" /* of `normbench emulate --depth --format json`; drawn when it is there */

/* results: null when there are none beside it. -1 after nb_error. */
int nb_stress_report(const char *dir, const cJSON *stress, const struct nb_results *results);
/* The same from DIR/stress.json. Returns 1, and does nothing, when there is none. */
int nb_stress_report_read(const char *dir, const struct nb_results *results);

/* ---- The judgement of a stress run for a terminal or a document: grades, breakdown frontiers, public bug inputs, what failed and how to
 * see it again. */

bool nb_stress_format_known(const char *format); /* table, markdown, json */
/* stress: as nb_stress_judge() made it; json prints it as it is. 0, or -1 after nb_error. */
int nb_stress_print(const cJSON *stress, const struct nb_results *results, const char *format, FILE *out);

#endif
