// SPDX-License-Identifier: Apache-2.0
/* The page and the pictures of a stress run: DIR/precision.html, which needs nothing else, and DIR/precision-plots/. */
#ifndef NB_STRESS_REPORT_H
#define NB_STRESS_REPORT_H

#include <cjson/cJSON.h>

#include "src/record/results.h"

#define NB_STRESS_PAGE "precision.html"
#define NB_STRESS_PLOTS "precision-plots"
#define NB_DEPTH_FILE "depth.json" /* of `normbench emulate --depth --format json`; drawn when it is there */

/* results: null when there are none beside it. -1 after nb_error. */
int nb_stress_report(const char *dir, const cJSON *stress, const struct nb_results *results);
/* The same from DIR/stress.json. Returns 1, and does nothing, when there is none. */
int nb_stress_report_read(const char *dir, const struct nb_results *results);

#endif
