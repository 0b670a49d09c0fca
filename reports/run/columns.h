// SPDX-License-Identifier: Apache-2.0
/* The columns that tables for people have: case columns (an axis) and measured ones, each printing one record's cell.
 */
#ifndef NB_COLUMNS_H
#define NB_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "src/record/record.h"

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

#endif
