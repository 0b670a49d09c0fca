// SPDX-License-Identifier: Apache-2.0
/* What the page and the text of a stress run share: the grades as lines and columns. */
#ifndef NB_STRESS_LINES_H
#define NB_STRESS_LINES_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/record/grade.h"

/* Of the widths of a kernel, with one dtype and formula, the worst. */
struct nb_stress_line {
    const cJSON *line; /* of "grades" */
    int n_widths;
};
struct nb_stress_lines {
    struct nb_stress_line *list; /* owned */
    size_t n;
    bool timed;
};
void nb_stress_lines_init(struct nb_stress_lines *out, const cJSON *stress);

enum nb_grade_cell {
    NB_CELL_TEXT,
    NB_CELL_WIDTH,
    NB_CELL_GRADE,
    NB_CELL_FIGURE,
    NB_CELL_SHARE,
    NB_CELL_COUNT,
    NB_CELL_TIME
};
struct nb_grade_column {
    const char *title, *help; /* of the page */
    const char *key;          /* of a line */
    enum nb_grade_cell kind;
    int digits; /* of a figure, on the page */
    const char *text_title;
    int text_digits;
};
enum { NB_N_GRADE_COLUMNS = 17 };
extern const struct nb_grade_column nb_grade_columns[NB_N_GRADE_COLUMNS];
static inline bool nb_grade_column_is_figure(const struct nb_grade_column *column) {
    return column->kind >= NB_CELL_FIGURE;
}
/* The text of a cell; empty where there is nothing to say. digits: of a figure. */
void nb_grade_cell(const struct nb_grade_column *column, const struct nb_stress_line *graded, int digits,
                   struct nb_strbuf *out);

/* Texts that a file leaves out are "". */
const char *nb_stress_text(const cJSON *object, const char *name);
/* Of a line; NB_GRADE_NONE: no evidence of anything. */
enum nb_grade nb_stress_grade(const cJSON *line, const char *name);
/* Is the kernel of `who` that of another entry before it in the list? */
bool nb_stress_is_named_before(const cJSON *list, const cJSON *who);

#endif
