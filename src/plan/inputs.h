// SPDX-License-Identifier: Apache-2.0
/* The numbers a case works on: named distributions with a seed, .npy files. Values are rounded once to the case's
 * dtype; the oracle and the kernels see the same stored values.
 *
 * What is filled depends on shape, dtype, data, seed and params alone, never on the formula, so that the cases of a group share it:
 *   x, residual  as the data axis says: a distribution, each from a stream of its own, or the rows of a file, cycled (the
 *                residual starts in the middle of the file)
 *   dy           as the dy axis says (a distribution, rows of a file, x itself), or drawn: NAME_dy.npy beside real rows, else standard
 *                normal; dresidual_out as if drawn, from the middle of the file or a stream of its own
 *   gamma, beta  as the params axis says (src/core/case.h); drawn: NAME_gamma.npy, NAME_beta.npy beside real rows, else 1 + 0.3 N(0,1)
 *                and 0.1 N(0,1) in f32
 *   running      mean and variance of x over all channels, moved by 0.1 standard deviations times N(0,1), and times a factor
 *                from 0.8 to 1.2 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/core/case.h"
#include "src/plan/distributions.h"
#include "src/plan/npy.h"

/* Packed, row after row, rows x cols of the case's shape (no stride, no padding). */
struct nb_inputs {
    enum nb_dtype dtype;
    int64_t rows, cols, n_params;      /* n_params: cols, in NCHW and NHWC c */
    void *x, *residual;                /* residual: null unless the op takes one (a copy may) */
    void *dy;                          /* backward only */
    void *dresidual_out;               /* backward of add_*: gradient that reaches the sum past the norm; null: none */
    float *gamma_f32, *beta_f32;       /* param: f32 */
    void *gamma_x, *beta_x;            /* param: x's dtype (the f32 values rounded to it) */
    float *running_mean, *running_var; /* BatchNorm only */
    struct nb_saved_statistics *saved; /* backward: of each mathematics that a case has; n_saved of them */
    int n_saved;
};

/* What a forward call leaves behind for its gradient. x of a backward add_* is the sum that it stored. */
struct nb_saved_statistics {
    struct nb_case c;   /* of whose mathematics they are */
    float *mean, *rstd; /* n of each; owned; a mean that is none is 0 */
    int64_t n;          /* rows; BatchNorm: c */
};

/* Checks that the data named exists and fits the shape, without reading all of it: null, or the reason (owned by caller). */
char *nb_inputs_refuse(const struct nb_case *c);
/* Data sets of real rows found in the data folder (NORMBENCH_DATA, tests/data beside the program, the installed share folder):
 * "minilm_embed", sorted. */
struct nb_strings nb_inputs_list(void);
/* Fills everything the case's op needs. -1 after nb_error. */
int nb_inputs_init(struct nb_inputs *in, const struct nb_case *c);
/* Adds what another case of the same shape, dtype, data, seed and params needs besides (a residual, dy, running statistics). */
int nb_inputs_add(struct nb_inputs *in, const struct nb_case *c);
void nb_inputs_release(struct nb_inputs *in);
/* The saved statistics that serve a backward case (src/accuracy/gradient.h makes them): index into in->saved, or -1. */
int nb_inputs_saved(const struct nb_inputs *in, const struct nb_case *c);
/* Takes all of them away, where the inputs have changed. */
void nb_inputs_drop_saved(struct nb_inputs *in);
/* 1: independent draws, whose error has a predictable bias; 0: real rows, or an extreme. */
int nb_inputs_is_random(const struct nb_case *c);

/* ---- where rows come from ---- */

/* Where a case's rows come from: its data axis, resolved to a distribution or to files.
 *
 * A path (it holds a slash or ends in .npy) is the file of x; a bare name that is no distribution
 * stands for NAME_x.npy in the data folder. Beside x, files of the same name with gamma, beta or dy for x are taken where they are:
 * foo_x.npy or foo.npy -> foo_gamma.npy. */

struct nb_source {
    struct nb_recipe recipe;            /* data null: files */
    struct nb_array x, gamma, beta, dy; /* rows == 0: no such file */
    struct nb_recipe dy_recipe;         /* of a dy that the axis chooses; data null: the file, or x */
};

/* gamma, beta: a value for each column; in NCHW and NHWC, which BatchNorm and its copy have, for each channel. */
int64_t nb_case_n_params(const struct nb_case *c);

/* header_only: sizes are checked, values not read. -1 with the reason written. */
int nb_source_open(struct nb_source *s, const struct nb_case *c, bool header_only, char *reason, size_t n);
/* Rows and columns of a data set or file, 0 and 0 where any number will do (distributions). -1 with the reason written. */
int nb_source_size(const char *data, int64_t *rows, int64_t *cols, char *reason, size_t n);
void nb_source_release(struct nb_source *s);

/* The data folder: NORMBENCH_DATA, tests/data beside the program or one above, the installed share folder. Owned, or null. */
char *nb_data_dir(void);
