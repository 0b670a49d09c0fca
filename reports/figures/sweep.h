// SPDX-License-Identifier: Apache-2.0
/* Finds the cases that may stand on one curve (against row length, or against the working set, everything else must hold still), and
 * the pairs that show what RMSNorm saves of LayerNorm's time: cut = 1 - t_rmsnorm / t_layernorm (Zhang & Sennrich 2019, tables 2 to 7). */
#pragma once

#include <stdbool.h>

#include "src/record/record.h"

enum nb_sweep_by { NB_BY_LENGTH, NB_BY_BYTES, NB_ONE_SHAPE };

struct nb_sweep {
    size_t *records; /* indices, by row length or bytes; owned */
    size_t n;
    size_t n_steps;  /* different row lengths or sizes among them */
    char *constants; /* "64 rows, pass forward, dtype f32, data normal, ...": all that is held still; owned */
    char *subtitle;  /* of that, what a reader would not expect anyway; owned */
};

typedef bool nb_record_filter(const struct nb_record *r, const void *arg);

/* Of the timed records of one machine that the filter accepts, the set with the most steps in which nothing differs but kernel, width, shape,
 * and the axes in `free_axes` (null-terminated, may be null). Against row length the number of rows is constant where that gives a
 * curve, else rows x cols is; against the working set the row length is. NB_ONE_SHAPE: no curve, the most cases of one shape. */
void nb_sweep_find(struct nb_sweep *sweep, const struct nb_results *results, enum nb_sweep_by by,
                   nb_record_filter *accepts, const void *arg, const char *const *free_axes);
void nb_sweep_release(struct nb_sweep *sweep);

/* Texts of the axes that a curve holds still, except shape and free_axes: equal for records that may share one. */
void nb_sweep_constants(const struct nb_record *r, const char *const *free_axes, struct nb_strbuf *out);
/* Has the record a time that may be drawn? */
bool nb_record_timed(const struct nb_record *r);

/* The kernel's name behind that of its op, "_twopass": the algorithm. Owned by the caller. */
char *nb_kernel_suffix(const struct nb_record *r);

/* ---- cuts ---- */

struct nb_cut {
    size_t layernorm, rmsnorm; /* indices of the records */
    struct nb_interval cut;
};

/* All pairs that may be compared: both were timed against the same reference case in the same group (so that the ratio is one of
 * paired ratios), and they agree in dtype, width, style, place and dtype of the statistics, shape and formula; gamma and beta
 * are each op's own. A LayerNorm kernel is paired with the RMSNorm kernel named alike, else with the first that fits.
 * Returns the number written to *cuts (owned by the caller). */
size_t nb_cuts_find(const struct nb_results *results, struct nb_cut **cuts);

/* 1 - rms/ln. The two ratios share the reference, and how their errors hang together is not known: the half-widths of
 * the logarithms are added, which covers every case. A side that is the reference itself comes as {1, 1, 1}. */
struct nb_interval nb_cut_of(const struct nb_interval *rms, const struct nb_interval *ln);
