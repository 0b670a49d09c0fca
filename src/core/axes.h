// SPDX-License-Identifier: Apache-2.0
/* The table of the axes that span the matrix, the one place that knows how an axis is written: configs, --axis, the case key, `list axes`,
 * the records and the error messages all read it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/core/text.h"

struct nb_case;

/* What an axis does in a config block. */
enum nb_axis_kind {
    NB_AXIS_SELECT, /* chooses among the kernels of the registry (op, pass, kernel, dtype, width, stats, style, backend ...) */
    NB_AXIS_CELL, /* sets a field of the case */
};

struct nb_axis {
    const char *name;
    enum nb_axis_kind kind;
    const char *fallback;       /* the value of a block that leaves the axis out; null: all */
    const char *help;           /* one line */
    const char *const *choices; /* null-terminated, or null when the values are free text */
    size_t
        at; /* where in a case stands the uint32_t that is an index into choices, else the text; 0: set and print know */
    int (*set)(struct nb_case *c, const char *text, char *reason, size_t n);
    void (*print)(const struct nb_case *c, struct nb_strbuf *out); /* null: what stands there */
    /* Does the axis mean anything for this case (its op, dtype)? Null: always. */
    bool (*applies)(const struct nb_case *c);
};
extern const struct nb_axis nb_axes[];
extern const size_t nb_n_axes;
const struct nb_axis *nb_axis_find(const char *name); /* also by alias; null */
/* Of an axis of cells: sets the field from text. On a bad value writes into reason how to go on after the value ("is not one of
 * inside, outside, clamp") and returns -1. */
int nb_axis_set(const struct nb_axis *axis, struct nb_case *c, const char *text, char *reason, size_t n);
/* The value as the key prints it. */
void nb_axis_print(const struct nb_axis *axis, const struct nb_case *c, struct nb_strbuf *out);

/* ---- lists of values ---- */

/* The list of values that a block gives to one axis. */

struct nb_values {
    char **texts;
    size_t n;
    int line; /* where it stands in the file; 0: from an option or a default */
};

/* Adds what a text stands for: one value, or all shapes of a preset or range. Choices are stored by their usual name ("fp32" as
 * "f32"), other values as typed. -1 with the reason written, as by nb_axis.set. */
int nb_values_add(struct nb_values *values, const struct nb_axis *axis, const char *text, char *reason, size_t n);
void nb_values_release(struct nb_values *values);
