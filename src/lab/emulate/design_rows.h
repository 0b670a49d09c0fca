// SPDX-License-Identifier: Apache-2.0
/* The rows and weights that designs are compared on: those that a case of the same data and seed has, rounded to the formats
 * that the design stores them in. */
#ifndef NB_DESIGN_ROWS_H
#define NB_DESIGN_ROWS_H

#include <stdint.h>

#include "src/lab/emulate/design.h"

struct nb_design_data {
    const char *data;   /* as the data axis: "normal", "offset(1000)", a data set, a file */
    int64_t rows, cols; /* 0: as the file has them; of a distribution 64 x 4096 */
    uint64_t seed;
    enum nb_affine affine; /* NB_N_AFFINES: the op's usual one */
};

struct nb_design_rows {
    int64_t rows, cols;
    enum nb_affine affine;
    bool random; /* independent draws, whose bias can be predicted */
    double *x;   /* rows x cols, numbers of the design's store */
    double *gamma,
        *beta; /* cols, or null; with weight_offset gamma is what 1 is added to, so that all designs see one weight */
};

/* Takes the place of rows and cols that are 0. -1 after nb_error. */
int nb_design_data_resolve(struct nb_design_data *data);
/* -1 after nb_error. data: resolved. */
int nb_design_rows_init(struct nb_design_rows *r, const struct nb_design *d, const struct nb_design_data *data);
void nb_design_rows_release(struct nb_design_rows *r);

#endif
