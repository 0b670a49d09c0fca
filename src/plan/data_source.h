// SPDX-License-Identifier: Apache-2.0
/* Where a case's rows come from: its data axis, resolved to a distribution or to files.
 *
 * A path (it holds a slash or ends in .npy, .f16, .bf16, .f32, .f64) is the file of x; a bare name that is no distribution
 * stands for NAME_x.npy in the data folder. Beside x, files of the same name with gamma, beta or dy for x are taken where they are:
 * foo_x.npy or foo.npy -> foo_gamma.npy. */
#ifndef NB_DATA_SOURCE_H
#define NB_DATA_SOURCE_H

#include <stddef.h>

#include "src/core/case.h"
#include "src/plan/distributions.h"
#include "src/plan/npy.h"

struct nb_source {
    struct nb_recipe recipe;            /* data null: files */
    struct nb_array x, gamma, beta, dy; /* rows == 0: no such file */
};

/* gamma, beta: a value for each column; in NCHW and NHWC, which BatchNorm and its copy have, for each channel. */
int64_t nb_case_n_params(const struct nb_case *c);

/* header_only: sizes are checked, values not read. -1 with the reason written. */
int nb_source_open(struct nb_source *s, const struct nb_case *c, bool header_only, char *reason, size_t n);
/* Rows and columns of a data set or file, 0 and 0 where any number will do (distributions) and cols 0 where the file does not
 * say (raw files). -1 with the reason written. */
int nb_source_size(const char *data, int64_t *rows, int64_t *cols, char *reason, size_t n);
void nb_source_release(struct nb_source *s);

/* The data folder: NORMBENCH_DATA, tests/data beside the program or one above, the installed share folder. Owned, or null. */
char *nb_data_dir(void);
/* Names of the data sets in the folder: owned strings in *names, sorted; returns how many. */
int nb_data_dir_list(char ***names);

#endif
