// SPDX-License-Identifier: Apache-2.0
/* The page and the pictures of a stress run: DIR/precision.html, which needs nothing else, and DIR/precision-plots/. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "reports/figures/figure.h"
#include "src/record/grade.h"
#include "src/record/record.h"

#define NB_STRESS_PLOTS "precision-plots"

/* results: null when there are none beside it. -1 after nb_error. */
int nb_stress_report(const char *dir, const cJSON *stress);
/* The same from DIR/stress.json. Returns 1, and does nothing, when there is none. */
int nb_stress_report_read(const char *dir);

/* ---- The judgement of a stress run for a terminal or a document: grades, breakdown frontiers, public bug inputs, what failed and how to
 * see it again. */

/* stress: as nb_stress_judge() made it; json prints it as it is. 0, or -1 after nb_error. */
int nb_stress_print(const cJSON *stress, const struct nb_results *results, const char *format, FILE *out);

/* ---- Figures of precision, from stress.json. ---- */

/* All of a stress run. stress may be null. */
void nb_stress_figures_init(struct nb_figures *figures, const cJSON *stress);

/* ---- What the page and the text of a stress run share: the grades as lines and columns. ---- */

/* Of the widths of a kernel, with one dtype and formula, the worst. */
struct nb_stress_line {
    const cJSON *line; /* of "grades" */
    int n_widths;
};
struct nb_stress_lines {
    struct nb_stress_line *list; /* owned */
    size_t n;
};
void nb_stress_lines_init(struct nb_stress_lines *out, const cJSON *stress);

enum nb_grade_cell { NB_CELL_TEXT, NB_CELL_WIDTH, NB_CELL_GRADE, NB_CELL_FIGURE, NB_CELL_SHARE, NB_CELL_COUNT };
struct nb_grade_column {
    const char *title, *help; /* of the page */
    const char *key;          /* of a line */
    enum nb_grade_cell kind;
    int digits;            /* of a figure, on the page */
    int text_digits, rank; /* of a table; rank: of its column */
};
enum { NB_N_GRADE_COLUMNS = 15 };
extern const struct nb_grade_column nb_grade_columns[NB_N_GRADE_COLUMNS];
static inline bool nb_grade_column_is_figure(const struct nb_grade_column *column) {
    return column->kind >= NB_CELL_FIGURE;
}
/* The text of a cell; empty where there is nothing to say. digits: of a figure. */
void nb_grade_cell(const struct nb_grade_column *column, const struct nb_stress_line *graded, int digits,
                   struct nb_strbuf *out);

/* Of a line; NB_GRADE_NONE: no evidence of anything. */
enum nb_grade nb_stress_grade(const cJSON *line, const char *name);
bool nb_stress_is_low(const cJSON *line, const char *name); /* below B */
/* Is the kernel of `who` that of another entry before it in the list? */
bool nb_stress_is_named_before(const cJSON *list, const cJSON *who);
