// SPDX-License-Identifier: Apache-2.0
/* What becomes of a norm's errors over K residual blocks, x <- x + f(norm(x)), beside the same blocks in exact arithmetic.
 *
 * The block is f(y) = step (y / 8 + sqrt(63/64) P y), P a permutation with signs that differs from block to block: an eighth goes
 * on along the stream, so that an error of the scale that comes back in every block adds up; the rest mixes, so that the last
 * roundings differ from block to block as they do in a network. The error e of a row after k blocks is taken apart into
 *     gain       its part along the row, <e, x> / |x|
 *     residual   the rest
 * The gain's mean over rows grows linearly with k when the error has a preferred side; the residual grows as the root, as long as
 * step * k is small: then the errors that a block passes on to the next one are few beside those that it makes.
 *
 * The stream itself may be stored in a format, too, as kernels do that add and normalize in one: then its own roundings, by the
 * design's store_rounding, are part of the errors. */
#ifndef NB_DEPTH_H
#define NB_DEPTH_H

#include <stdint.h>

#include "src/accuracy/accuracy.h"
#include "src/lab/emulate/design.h"

/* ---- The rows and weights that designs are compared on: those that a case of the same data and seed has, rounded to the formats
 * that the design stores them in. ---- */

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
     * bias_sigma about the bias that is predicted; meaningless where no_bound says why there is none. The witness is the
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

struct nb_depth_options {
    int blocks;
    double step;           /* of f, in the row's rms before the first block */
    enum nb_number stream; /* what x is kept in between blocks; NB_NUM_F64: not rounded */
    uint64_t seed;
};

/* After a block, over rows. All in u of the design's store; relative to the stream as it is then, and to what one block adds. */
struct nb_depth_point {
    double gain_u, gain_rms_u,
        residual_u; /* of the stream's rms: mean and rms over rows of the gain, rms of the residual */
    double gain_blocks_u, gain_rms_blocks_u, residual_blocks_u; /* of the rms of one block's f, step * rms(y) */
};

struct nb_depth {
    struct nb_depth_point *points; /* blocks of them; owned */
    int blocks;
    /* Exponents p of |figure| ~ k^p by least squares over the last seven eighths, of the figures relative to what one block adds, or
     * with a rounded stream relative to the stream; NaN where a figure is 0 or no number, and that of the mean gain where the mean is
     * not beyond 3 standard errors in the end: a gain without a preferred side has no law. */
    double gain_exponent, gain_rms_exponent, residual_exponent;
};

/* -1 after nb_error. The rows' statistics must be numbers: rows with Inf or NaN give NaN. */
int nb_depth_run(struct nb_depth *depth, const struct nb_design *d, const struct nb_design_rows *rows,
                 const struct nb_depth_options *options);

#endif
