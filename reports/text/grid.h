// SPDX-License-Identifier: Apache-2.0
/* A small table of texts, whatever they are about: for listings and reports. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "src/core/text.h"

enum nb_grid_style { NB_GRID_PLAIN, NB_GRID_BAD, NB_GRID_DOUBTFUL, NB_GRID_GOOD, NB_GRID_N_STYLES };
#define NB_GRID_STAYS 100 /* a rank: the column is never left out */

struct nb_grid {
    const char *const *titles; /* borrowed; also the keys of JSON */
    size_t n_columns;
    char **cells; /* row by row */
    size_t n_cells;
    const bool *right;          /* by column: aligned to the right; null: none is; borrowed */
    enum nb_grid_style *styles; /* by row, for tables on a terminal with colours; null: all plain */
    size_t n_styles;
    const int *ranks; /* by column: the smallest is left out first where a line is too long; null: all stay; borrowed */
    size_t
        screen; /* cells of a line; what is too long without the columns that may go stands in several lines; 0: no limit */
    bool wide;             /* nb_grid_print() sets no limit of its own */
    bool keyed;            /* set by nb_grid_print(): titles are keys, and a table shows blanks for their underscores */
    struct nb_strbuf cell; /* the cell in the making, of nb_grid_end_cell() */
};

void nb_grid_init(struct nb_grid *grid, const char *const *titles, size_t n_columns);
/* A table with these titles, for the scope that declares it. */
#define nb_grid_of(...)                                                                                                \
    (struct nb_grid) {                                                                                                 \
        .titles = (const char *const[]){__VA_ARGS__},                                                                  \
        .n_columns = sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)                                            \
    }
/* The next cell of the row: a text, or what was written into grid->cell. */
void nb_grid_add(struct nb_grid *grid, const char *text);
void nb_grid_end_cell(struct nb_grid *grid);
/* Several cells, texts. */
#define nb_grid_row(grid, ...) nb_grid_add_texts(grid, __VA_ARGS__, (const char *)NULL)
void nb_grid_add_texts(struct nb_grid *grid, ...) __attribute__((sentinel));
/* The next cell, as printf() makes it, behind what is in grid->cell; and one that stays empty unless the figure is known. */
void nb_grid_addf(struct nb_grid *grid, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define nb_grid_add_known(grid, known, ...) ((known) ? nb_grid_addf(grid, __VA_ARGS__) : nb_grid_add(grid, ""))
/* The same by a function that appends to a text: nb_grid_put(grid, nb_format_ratio, &ratio). */
#define nb_grid_put(grid, append, ...) (append(&(grid)->cell, __VA_ARGS__), nb_grid_end_cell(grid))
/* The style of the row whose first cell is added next; rows before without one are plain. */
void nb_grid_style(struct nb_grid *grid, enum nb_grid_style style);
/* As table (aligned columns, the last as long as it is), markdown, csv or json. -1 after nb_error. */
int nb_grid_print(const struct nb_grid *grid, const char *format, FILE *out);
/* The same as text, for a document that holds more than the table. */
void nb_grid_add_table(const struct nb_grid *grid, bool color, struct nb_strbuf *out);
void nb_grid_add_markdown(const struct nb_grid *grid, bool color, struct nb_strbuf *out);
void nb_grid_release(struct nb_grid *grid);
