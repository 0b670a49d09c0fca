// SPDX-License-Identifier: Apache-2.0
/* How results are laid out as tables: which axes are the same everywhere (said once), which differ between groups (a
 * heading), and which differ inside (a column: an axis, or a measured one, each printing one record's cell). Cells that did not run are not in it; nb_summary counts them. */
#ifndef NB_VIEW_H
#define NB_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "src/record/results.h"

enum nb_priority { /* a terminal that is too narrow loses the columns of the smallest value first */
                   NB_DROP_FIRST,
                   NB_DROP_SECOND,
                   NB_DROP_THIRD,
                   NB_DROP_LAST,
                   NB_KEEP,
};

struct nb_column {
    const char *title;
    const struct nb_axis *axis; /* a case column; null: a measured one, made by print */
    void (*print)(const struct nb_record *r, bool utf8, struct nb_strbuf *out);
    void (*print_narrow)(const struct nb_record *r, bool utf8,
                         struct nb_strbuf *out); /* for narrow screens; null: print */
    bool right;                                  /* aligned to the right */
    enum nb_priority priority;
};

/* The measured columns, in their order. */
extern const struct nb_column nb_measured_columns[];
extern const size_t nb_n_measured_columns;

/* Is the record its group's reference? */
bool nb_is_reference(const struct nb_record *r);
/* The cell of a record, not escaped. */
void nb_column_print(const struct nb_column *column, const struct nb_record *r, bool utf8, struct nb_strbuf *out);

/* ---- layout ---- */

#define NB_VIEW_COLUMNS 64

struct nb_section {
    char *heading;   /* "f32  64x384  data normal"; "" when there is nothing to tell apart; owned */
    size_t *records; /* indices into results->records, in their order; owned */
    size_t n;
    bool said[NB_VIEW_COLUMNS];   /* on a narrow screen: axis columns that the heading has */
    char *usual[NB_VIEW_COLUMNS]; /* and the value that the heading gives for most of its rows; owned, or null */
    bool hidden[NB_VIEW_COLUMNS]; /* axis columns that say the same in all its rows: the heading has them */
};

struct nb_view {
    const struct nb_results *results; /* borrowed */
    struct nb_column columns[NB_VIEW_COLUMNS];
    size_t n_columns;
    struct nb_section *sections;
    size_t n_sections;
    char *constants; /* "pass forward, eps 1e-5, ...": axes with one value; owned */
};

void nb_view_init(struct nb_view *view, const struct nb_results *results);
void nb_view_release(struct nb_view *view);
/* Appends "root div_sqrt" to a heading, but for values that a reader expects anyway. */
void nb_view_add_to_heading(const struct nb_axis *axis, const char *value, struct nb_strbuf *heading);

#endif
