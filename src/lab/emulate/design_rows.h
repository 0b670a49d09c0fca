// SPDX-License-Identifier: Apache-2.0
/* The rows and weights that designs are compared on, and how accurate a design is on them. */
#pragma once

#include <stdint.h>

#include "src/accuracy/accuracy.h"
#include "src/lab/emulate/design.h"

/* The rows and weights that a case of the same data and seed has, rounded to the formats that the design stores them in. */

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

/* ---- How accurate a design is on given rows: the figures that a kernel's check has, against the exact result ---- */

struct nb_design_report {
    /* Of all elements, those included whose loss is predicted. worst_ratio, n_beyond, loss and n_rows_lost are about the bound,
     * bias_sigma about the bias that is predicted; meaningless where no_bound says why there is none. The reproducer is the
     * element with the largest error in ulp. */
    struct nb_accuracy accuracy;
    const char *no_bound;
    double nmse;        /* sum of squared errors over sum of squares, of the elements that are numbers in both */
    double rstd_bias_u; /* mean over rows of computed / exact - 1, in u of the store: the gain of RMSNorm */
    double rstd_sd_u;   /* and its standard deviation over rows */
    int64_t chain;
};

/* seed: of stochastic rounding. */
void nb_design_measure(struct nb_design_report *report, const struct nb_design *d, const struct nb_design_rows *rows,
                       uint64_t seed);
