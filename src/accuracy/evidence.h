// SPDX-License-Identifier: Apache-2.0
/* What a grade (grade.h) rests on beside struct nb_accuracy: which rows these were, whether the kernel claims its accuracy for
 * them, and how every element came out, those included whose loss the formula predicts and which nb_accuracy leaves out.
 * Elements whose exact result is no number (Inf or NaN in the row, 0/0) are left out. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "src/accuracy/oracle.h"

struct nb_evidence {
    int64_t n_rows, n_rows_not_finite; /* rows with Inf or NaN in them, or in their channel */
    /* Extremes over the finite rows (BatchNorm: channels; add_*: of the sum). rho = |mean| / standard deviation is 0 for ops that
     * do not centre. */
    double min_rms, max_abs, max_rho;
    struct nb_range claimed;
    bool is_declared; /* by the kernel; else claimed is the range of our own kernels */
    bool covered;     /* by the claim */

    int64_t n, n_correct; /* elements compared; of them equal to the rounded exact value */
    int64_t n_nan, n_inf; /* where the exact result is a number */
    int64_t
        n_zero; /* where it is a normal number above 2^-10 rms(y), and 0 is beyond the bound or the bound is infinite */
    int64_t n_beyond;         /* beyond the bound, all those included */
    int64_t n_unbounded;      /* elements without a finite bound: the formula predicts a loss */
    double bound_ratio;       /* largest |error| / bound, where the bound is finite */
    double max_ulp;           /* largest |error| in ulp of the exact result */
    double componentwise_ulp; /* in ulp of at least rms(y) / NB_CANCELLING where y may cancel (a centred op, a beta) */
    double normwise_u;        /* worst row: ||error|| / ||y||, in u; infinite with a NaN or Inf */
    int64_t worst_row, worst_col; /* of componentwise_ulp, or the first NaN, Inf or lost element; -1: none */
    /* NaN or Inf in finite rows of a forward call whose squares do not overflow and which the kernel's declared range has (of one that declares
     * none: all of them), whatever the bound allows: how many, and the row with the smallest rho. */
    int64_t n_broken, broken_row;
    double broken_rho;
    /* y - beta = factor times the exact one, by least squares in each row: the least and the largest factor, and the largest rest, relative in
     * norm. NaN: BatchNorm, or no row with a finite result but 0. */
    double factor_low, factor_high, factor_rest;
};

/* Relative errors say nothing about an element that cancels: below this part of its row's rms it is measured as if it stood there. */
#define NB_CANCELLING 16.0

struct nb_evidence_sum; /* running sums, opaque */
/* Of a case of the kernel (the oracle may be another's, of the same mathematics); claimed and is_declared of `of`: what the kernel's range()
 * said of the call. */
struct nb_evidence_sum *nb_evidence_new(const struct nb_case *c, const struct nb_oracle *oracle,
                                        const struct nb_evidence *of);
/* One row: computed elements of the dtype, exact values, tolerances as nb_bound_row() gives them. */
void nb_evidence_row(struct nb_evidence_sum *s, int64_t row, const void *computed, const double *exact,
                     const double *tolerance);
/* Fills out and frees s. */
void nb_evidence_finish(struct nb_evidence_sum *s, struct nb_evidence *out);

/* The same in the journal and in results.json ("evidence"). */
cJSON *nb_evidence_to_json(const struct nb_evidence *e);
int nb_evidence_from_json(struct nb_evidence *e, const cJSON *json); /* -1 after nb_error */
