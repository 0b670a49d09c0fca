// SPDX-License-Identifier: Apache-2.0
/* Executes a design step by step: every operation in double with the remainder known, then rounded once to the step's format. */
#pragma once

#include <stdint.h>

#include "src/accuracy/accuracy.h"
#include "src/accuracy/bound.h"
#include "src/accuracy/oracle.h"
#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/lab/emulate/design.h"
#include "src/plan/inputs.h"

struct nb_emulated {
    double mean, var, rstd; /* as the design computed them, in its formats */
};

/* One row of cols values (each representable in d->store), gamma and beta (null: none; representable in d->weight) -> y, in
 * d->store. seed: of stochastic rounding, one per row. */
struct nb_emulated nb_emulate_row(const struct nb_design *d, int64_t cols, const double *x, const double *gamma,
                                  const double *beta, double *y, uint64_t seed);
/* The sum of squares alone, S in d->acc, of the first n values: what the laws of accumulation are about. */
double nb_emulate_sum_of_squares(const struct nb_design *d, int64_t n, const double *x, uint64_t seed);

/* ---- The exact result of one row of numbers of any format, to about 100 bits: each element is y + y_low, double-double from the
 * statistics to the last addition, off by less than 2^-95 of the largest term in it (x * scale * gamma, mean * scale * gamma,
 * beta). Enough to judge f64. For x of magnitude 0 or 2^-300 to 2^300; rows with Inf or NaN follow IEEE evaluation. */

/* op, eps, its place, weight_offset and k as in c, whose shape has the columns; gamma, beta: null for 1 and 0. t, y_low: may be
 * null. */
void nb_exact_row(const struct nb_case *c, const double *x, const double *gamma, const double *beta,
                  struct nb_row_truth *t, double *y, double *y_low);

/* What is left of numbers when they are stored in 8 bits: e4m3, e5m2, or int8 (symmetric, -127 to 127), after division by a scale
 * that takes the largest magnitude to the format's largest number: of the whole tensor, of each row, or none. */

enum nb_quantum { NB_QUANTUM_E4M3, NB_QUANTUM_E5M2, NB_QUANTUM_INT8, NB_N_QUANTA };
enum nb_scaling { NB_SCALING_NONE, NB_SCALING_TENSOR, NB_SCALING_ROW, NB_N_SCALINGS };
extern const char *const nb_quantum_names[]; /* null-terminated: "e4m3", "e5m2", "int8" */
extern const char *const nb_scaling_names[]; /* "none", "tensor", "row" */

/* What becomes NaN or Inf has an infinite error: -Infinity dB, and Infinity in the other figures. */
struct nb_quantized {
    int64_t n, n_not_finite; /* elements; of them left out, NaN or Inf before the quantization */
    double sqnr_db;          /* 10 log10(sum v^2 / sum error^2) */
    double max_error;        /* largest |error| over the rms of its row */
    double max_relative;     /* largest |error / v| of elements that do not become 0 */
    double mean_relative;    /* mean of |error / v| over elements other than 0; what becomes 0 counts 1 */
    double rms_error;        /* rms of error over the rms of its row */
    double lost;             /* share of elements other than 0 that become 0 */
    double beyond;           /* share beyond the range: NaN or Inf, in int8 cut off */
    double largest_scale, smallest_scale;
};

/* The scale itself is rounded to f32, as it is stored. */
void nb_quantize(struct nb_quantized *q, const double *values, int64_t rows, int64_t cols, enum nb_quantum quantum,
                 enum nb_scaling scaling);
extern const struct nb_member nb_quantized_members[];

/* The rows and weights that designs are compared on, and how accurate a design is on them: those that a case of the same data and seed has,
 * rounded to the formats that the design stores them in. */

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

/* The bound for these rows in a chain of so many roundings, with the truth of each row to be filled in, and what both are read from. Stays where it
 * is. */
struct nb_design_judge {
    struct nb_case c;
    struct nb_inputs sizes; /* no tensor */
    struct nb_oracle oracle;
    struct nb_bound bound;
};
void nb_design_judge_init(struct nb_design_judge *j, const struct nb_design *d, const struct nb_design_rows *r,
                          int64_t chain);
void nb_design_judge_release(struct nb_design_judge *j);

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
