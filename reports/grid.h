// SPDX-License-Identifier: Apache-2.0
/* A small table of texts that knows nothing of results: for listings. */
#ifndef NB_GRID_H
#define NB_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct nb_grid {
    const char *const *titles; /* borrowed; also the keys of JSON */
    size_t n_columns;
    char **cells; /* row by row */
    size_t n_cells;
};

void nb_grid_init(struct nb_grid *grid, const char *const *titles, size_t n_columns);
/* The next cell of the row. */
void nb_grid_add(struct nb_grid *grid, const char *text);
bool nb_grid_format_known(const char *format); /* table, markdown, csv, json */
/* table: aligned columns, the last as long as it is. -1 after nb_error. */
int nb_grid_print(const struct nb_grid *grid, const char *format, FILE *out);
void nb_grid_release(struct nb_grid *grid);

#endif
