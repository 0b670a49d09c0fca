// SPDX-License-Identifier: Apache-2.0
/* What the mathematics says: compensated double arithmetic, correct to far below one f32 ulp, following what the case states
 * (eps and its place, weight offset, pRMSNorm's k, whether a residual sum is rounded first) and ignoring how kernels evaluate it
 * (root form, casts, accumulators), which is what is judged. Built with -ffp-contract=off; refuses to run with FTZ or DAZ.
 *
 * Error of y: below 1e-7 f32 ulp, also where beta cancels it, save that DyT then has the 64 bits of tanhl; test_oracle.c
 * holds it against MPFR. Rows with Inf or NaN follow IEEE evaluation of the formula, left to right: one Inf in RMSNorm gives a
 * scale of 0, so 0 for the finite elements and NaN for the infinite one. */
#pragma once

#include <stdint.h>

#include "src/core/case.h"
#include "src/core/twofold.h"
#include "src/plan/inputs.h"

/* ---- statistics of each row or channel, by compensated sums ------------------------------------------------------------ */

/* Statistics of one row (BatchNorm: of one channel; in inference the running ones). The pairs hi + lo hold about 100 bits, of
 * the mean relative to mean_abs. */
struct nb_row_truth {
    double mean, mean_lo;   /* 0 where the op does not centre */
    double var, var_lo;     /* variance about the mean; RMSNorm: mean square; L2: sum of squares */
    double scale, scale_lo; /* 1 / sqrt(var + eps), or as eps_place says */
    double mean_square;     /* of the elements that the statistics see */
    double mean_abs;        /* mean |x| */
    double max_abs;         /* max |x| */
    double min, max, first; /* of the elements that the statistics see */
};

/* How many elements a statistic is taken over. */
int64_t nb_truth_elements(const struct nb_case *c);
/* Elements first .. first + n - 1 of an array of the dtype, exactly. */
void nb_truth_widen(const void *array, int64_t first, int64_t n, enum nb_dtype dtype, double *out);
/* The row that is normalized, exactly: x, or for add_* the f32 sum, rounded to the dtype where the formula says so. Backward: x, which
 * is the sum that was stored. */
void nb_truth_row(const struct nb_case *c, const struct nb_inputs *in, int64_t row, double *v);
/* The elements of a channel of x, dy .. (BatchNorm), in the order of the rows. */
void nb_truth_channel(const struct nb_case *c, const struct nb_inputs *in, const void *tensor, int64_t channel,
                      double *v);
/* One row of any numbers of magnitude 0 or 2^-300 to 2^300, of which the statistics see the first n. */
void nb_truth_of_row(struct nb_row_truth *t, const struct nb_case *c, const double *x, int64_t n);

/* ---- tanh ------------------------------------------------------------------------------------------------------------ */

/* tanh and its slope, as DyT needs them: to a few 2^-53 of themselves each, the slope also where tanh has long rounded to 1. */

struct nb_squash {
    double tanh, slope; /* of alpha * x: tanh, and 1 - tanh^2 */
};

/* Those of one row of x, kept for when the same row is wanted again: not for two threads at once. */
struct nb_squashed_rows;
struct nb_squashed_rows *nb_squashed_rows_new(double alpha, const struct nb_inputs *in); /* borrows in; for free() */
const struct nb_squash *nb_squashed_row(struct nb_squashed_rows *kept, int64_t row);

/* ---- the oracle ------------------------------------------------------------------------------------------------------ */

struct nb_oracle {
    const struct nb_case *c;
    const struct nb_inputs *in;
    struct nb_row_truth *truth; /* rows of them; BatchNorm: c */
    int64_t n_truth;
    double *gamma, *beta; /* as stored, without offset; null where the formula has none */
    int64_t n_params;
    int64_t n_stats;                   /* elements that the statistics see: cols, k, or n * hw */
    struct nb_squashed_rows *squashed; /* DyT; else null */
};

/* What an element is multiplied by: gamma or 1 + gamma, in double; 1 where the formula has none. */
static inline double nb_oracle_weight(const struct nb_oracle *o, int64_t param) {
    return o->gamma ? o->gamma[param] + (o->c->formula.weight_offset ? 1 : 0) : 1;
}

/* -1 after nb_error where this thread flushes subnormals or does not round to nearest. */
int nb_oracle_environment(void);
/* Computes all statistics; -1 after nb_error when the environment flushes subnormals. Borrows c and in. */
int nb_oracle_init(struct nb_oracle *o, const struct nb_case *c, const struct nb_inputs *in);
/* y of one row, and the truth that belongs to its element i (BatchNorm NHWC: another for each column). */
void nb_oracle_row(const struct nb_oracle *o, int64_t row, double *y);
const struct nb_row_truth *nb_oracle_truth(const struct nb_oracle *o, int64_t row, int64_t col);
/* One element of a normalization to about 100 bits, from the truth of its row; gamma, as stored, and beta: null for 1 and 0. */
struct nb_twofold nb_exact_element(const struct nb_case *c, const struct nb_row_truth *t, double x, const double *gamma,
                                   const double *beta);
/* add_*: the residual_out of the case, rounded to the dtype. */
void nb_oracle_residual_row(const struct nb_oracle *o, int64_t row, double *sum);
/* BatchNorm training: running statistics after the call. */
void nb_oracle_running(const struct nb_oracle *o, double *mean, double *var);
void nb_oracle_release(struct nb_oracle *o);
