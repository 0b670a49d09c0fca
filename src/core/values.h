// SPDX-License-Identifier: Apache-2.0
/* The list of values that a block gives to one axis. */
#ifndef NB_VALUES_H
#define NB_VALUES_H

#include <stddef.h>

#include "src/core/case.h"

struct nb_values {
    char **texts;
    size_t n;
    int line; /* where it stands in the file; 0: from an option or a default */
};

/* Adds what a text stands for: one value, or all shapes of a preset or range. Choices are stored by their usual name ("fp32" as
 * "f32"), other values as typed. -1 with the reason written, as by nb_axis.set. */
int nb_values_add(struct nb_values *values, const struct nb_axis *axis, const char *text, char *reason, size_t n);
void nb_values_copy(struct nb_values *to, const struct nb_values *from);
void nb_values_release(struct nb_values *values);

#endif
