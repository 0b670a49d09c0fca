// SPDX-License-Identifier: Apache-2.0
/* What the mathematics says: compensated double arithmetic, correct to far below one f32 ulp, following what the case asks for
 * (eps and its place, weight offset, pRMSNorm's k, whether a residual sum is rounded first) and ignoring how kernels evaluate it
 * (root form, casts, accumulators), which is what is judged. Built with -ffp-contract=off; refuses to run with FTZ or DAZ.
 *
 * Error of y: below 1e-7 f32 ulp, also where beta cancels it, save that DyT then has the 64 bits of tanhl; test_oracle.c
 * holds it against MPFR. Rows with Inf or NaN follow IEEE evaluation of the formula, left to right: one Inf in RMSNorm gives a
 * scale of 0, so 0 for the finite elements and NaN for the infinite one. */
#ifndef NB_ORACLE_H
#define NB_ORACLE_H

#include <stdint.h>

#include "src/accuracy/squash.h"
#include "src/accuracy/truth.h"
#include "src/core/case.h"
#include "src/plan/inputs.h"

struct nb_oracle {
    const struct nb_case *c;
    const struct nb_inputs *in;
    struct nb_row_truth *truth; /* rows of them; BatchNorm: c */
    int64_t n_truth;
    double *gamma, *beta; /* as stored, without offset; null where the formula has none */
    int64_t n_params;
    int64_t n_stats;                  /* elements that the statistics see: cols, k, or n * hw */
    struct nb_squashed_row *squashed; /* DyT: of the row that was asked for last; else null */
};

/* -1 after nb_error where this thread flushes subnormals or does not round to nearest. */
int nb_oracle_environment(void);
/* Computes all statistics; -1 after nb_error when the environment flushes subnormals. Borrows c and in. */
int nb_oracle_init(struct nb_oracle *o, const struct nb_case *c, const struct nb_inputs *in);
/* y of one row, and the truth that belongs to its element i (BatchNorm NHWC: another for each column). */
void nb_oracle_row(const struct nb_oracle *o, int64_t row, double *y);
const struct nb_row_truth *nb_oracle_truth(const struct nb_oracle *o, int64_t row, int64_t col);
/* DyT: tanh and its slope of each element of a row. */
const struct nb_squash *nb_oracle_squash(const struct nb_oracle *o, int64_t row);
/* add_*: the residual_out that the case asks for, rounded to the dtype. */
void nb_oracle_residual_row(const struct nb_oracle *o, int64_t row, double *sum);
/* BatchNorm training: running statistics after the call. */
void nb_oracle_running(const struct nb_oracle *o, double *mean, double *var);
void nb_oracle_release(struct nb_oracle *o);

#endif
