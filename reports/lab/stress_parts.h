// SPDX-License-Identifier: Apache-2.0
/* Parts of the judgement of a stress run as text; each is left out where there is nothing to say. */
#ifndef NB_STRESS_PARTS_H
#define NB_STRESS_PARTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "reports/run/summary.h"
#include "reports/text/grid.h"

struct nb_stress_text {
    const cJSON *stress;
    const struct nb_results *results;
    const char *format; /* table or markdown */
    bool utf8;
    FILE *out;
};

/* 0, or -1 after nb_error. */
int nb_stress_print_grades(const struct nb_stress_text *p);
int nb_stress_print_frontiers(const struct nb_stress_text *p);
int nb_stress_print_bugs(const struct nb_stress_text *p);
void nb_stress_print_low(const struct nb_stress_text *p); /* below B in the declared range */
void nb_stress_print_failures(const struct nb_stress_text *p, const struct nb_summary *summary);

const cJSON *nb_stress_list(const struct nb_stress_text *p, const char *name);
void nb_stress_heading(const struct nb_stress_text *p, const char *text);
void nb_stress_say(const struct nb_stress_text *p, const char *text); /* escaped */
/* A cell with significant digits; empty where there is no number. */
void nb_grid_add_number(struct nb_grid *grid, double value, int digits);
void nb_grid_add_count(struct nb_grid *grid, double n); /* empty for none */

#endif
