// SPDX-License-Identifier: Apache-2.0
/* The map of a study (stress.json, "map"; src/lab/stress/sweeps.h says what is in it), read safely, and drawn on a terminal. */
#ifndef NB_HEAT_MAP_H
#define NB_HEAT_MAP_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "reports/figures/figure.h"

/* False: there is no map that could be drawn. */
bool nb_map_size(const cJSON *map, int *n_scales, int *n_rhos);
/* Element i of an array of numbers; NaN. */
double nb_map_number(const cJSON *array, int i);
/* The state of a cell, and its value (NaN when it has none). */
enum nb_heat_state nb_map_cell(const cJSON *map, int rho, int scale, double *log10_ulp);

/* rho upwards, scale to the right, one character a cell: eight levels of error, letters for what is no number; a legend below. Nothing
 * but a line with the reason where there is no map. */
void nb_render_heat_map(FILE *out, const cJSON *map, bool color);

#endif
