// SPDX-License-Identifier: Apache-2.0
/* The judgement of a stress run for a terminal or a document: grades, breakdown frontiers, public bug inputs, what failed and how to
 * see it again. */
#ifndef NB_STRESS_TABLE_H
#define NB_STRESS_TABLE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "src/record/results.h"

bool nb_stress_format_known(const char *format); /* table, markdown, json */
/* stress: as nb_stress_judge() made it; json prints it as it is. 0, or -1 after nb_error. */
int nb_stress_print(const cJSON *stress, const struct nb_results *results, const char *format, FILE *out);

#endif
