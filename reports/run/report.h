// SPDX-License-Identifier: Apache-2.0
/* Renderers: results -> what a person or another tool reads. One file a renderer; it defines
 * `const struct nb_renderer nb_renderer_NAME` and the build lists it. */
#ifndef NB_REPORT_H
#define NB_REPORT_H

#include <stdio.h>

#include "src/record/results.h"

struct nb_renderer {
    const char *name, *summary;                                 /* --format=NAME */
    int (*render)(const struct nb_results *results, FILE *out); /* 0, or -1 after nb_error */
};
const struct nb_renderer *nb_renderer_find(const char *name); /* null */
const struct nb_renderer *nb_renderer_at(size_t i);           /* by name; null behind the last */

/* Writes DIR/plots/ (data, gnuplot scripts, SVG and PNG where gnuplot is there) and DIR/index.html. */
int nb_plots_write(const struct nb_results *results, const char *dir);
int nb_html_write(const struct nb_results *results, const char *dir);

#endif
