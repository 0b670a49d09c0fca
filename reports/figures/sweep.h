// SPDX-License-Identifier: Apache-2.0
/* Finds the cases that may stand on one curve: a curve against row length, or against the working set, must hold everything else
 * still. */
#ifndef NB_SWEEP_H
#define NB_SWEEP_H

#include <stdbool.h>

#include "src/record/results.h"

enum nb_sweep_by { NB_BY_LENGTH, NB_BY_BYTES };

struct nb_sweep {
    size_t *records; /* indices, by row length or bytes; owned */
    size_t n;
    size_t n_steps;  /* different row lengths or sizes among them */
    char *constants; /* "64 rows, pass forward, dtype f32, data normal, ...": all that is held still; owned */
    char *subtitle;  /* of that, what a reader would not expect anyway; owned */
};

typedef bool nb_record_filter(const struct nb_record *r, const void *arg);

/* Of the timed records that the filter accepts, the set with the most steps in which nothing differs but kernel, width, shape,
 * and the axes in `free_axes` (null-terminated, may be null). Against row length the number of rows is constant where that gives a
 * curve, else rows x cols is; against the working set the row length is. Where neither does, any shapes are taken. */
void nb_sweep_find(struct nb_sweep *sweep, const struct nb_results *results, enum nb_sweep_by by,
                   nb_record_filter *accepts, const void *arg, const char *const *free_axes);
void nb_sweep_release(struct nb_sweep *sweep);

/* Texts of the axes that a curve holds still, except shape and free_axes: equal for records that may share one. */
void nb_sweep_constants(const struct nb_record *r, const char *const *free_axes, struct nb_strbuf *out);
/* The same without the axes that have their defaults; data, eps and root are always told. */
void nb_sweep_subtitle(const struct nb_record *r, const char *const *free_axes, struct nb_strbuf *out);
/* Has the record a time that may be drawn? */
bool nb_record_timed(const struct nb_record *r);

#endif
