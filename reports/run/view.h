// SPDX-License-Identifier: Apache-2.0
/* How results are laid out as tables: which axes are the same everywhere (said once), which differ between groups (a heading), and which
 * differ inside (a column). Of merged results a group is of one machine. Cells that did not run are not in it; nb_summary counts them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/core/axes.h"
#include "src/record/record.h"

enum nb_priority { /* a terminal that is too narrow loses the columns of the smallest value first */
                   NB_DROP_FIRST,
                   NB_DROP_SECOND,
                   NB_DROP_THIRD,
                   NB_DROP_LAST,
                   NB_KEEP,
};

enum nb_measured { /* in the order of the columns */
                   NB_MEASURED_KERNEL,
                   NB_MEASURED_STATUS,
                   NB_MEASURED_TIME,
                   NB_MEASURED_RATE,
                   NB_MEASURED_VS_COPY,
                   NB_MEASURED_ROOFLINE, /* share of the roofline, and the bottleneck */
                   NB_MEASURED_RATIO,
                   NB_MEASURED_MAX_ULP,
                   NB_MEASURED_BOUND,
                   NB_MEASURED_PARAMETERS,
                   NB_MEASURED_BIAS,
                   NB_MEASURED_NOTE,
                   NB_N_MEASURED
};

struct nb_column {
    const char *title;
    const struct nb_axis *axis; /* a case column; null: a measured one */
    enum nb_measured measured;
    bool right; /* aligned to the right */
    enum nb_priority priority;
};
extern const struct nb_column nb_measured_columns[NB_N_MEASURED];

/* Is the record its group's reference? */
bool nb_is_reference(const struct nb_record *r);
/* The cell of a record, not escaped; narrow: of times the ratio alone has its interval. */
void nb_column_print(const struct nb_column *column, const struct nb_record *r, bool narrow, struct nb_strbuf *out);

/* ---- layout ---- */

#define NB_VIEW_COLUMNS 64

struct nb_section {
    char *heading;   /* "machine 1  f32  64x384  data normal"; "" when there is nothing to tell apart; owned */
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

/* flat: one section, in which all that differs is a column. */
void nb_view_init(struct nb_view *view, const struct nb_results *results, bool flat);
void nb_view_release(struct nb_view *view);
/* Appends "root div_sqrt" to a heading, but for values that a reader expects anyway. */
void nb_view_add_to_heading(const struct nb_axis *axis, const char *value, struct nb_strbuf *heading);
