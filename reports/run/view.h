// SPDX-License-Identifier: Apache-2.0
/* How results are laid out as tables: which axes are the same everywhere (said once), which differ between groups (a
 * heading), and which differ inside (a column). Cells that did not run are not in it; nb_summary counts them. */
#ifndef NB_VIEW_H
#define NB_VIEW_H

#include "reports/run/columns.h"
#include "src/record/results.h"

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
/* Did the case run (or fail to), so that it belongs in a table? */
bool nb_record_ran(const struct nb_record *r);

#endif
