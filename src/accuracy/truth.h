// SPDX-License-Identifier: Apache-2.0
/* The statistics behind the oracle: mean, variance and scale of each row or channel, by compensated sums. */
#ifndef NB_TRUTH_H
#define NB_TRUTH_H

#include <stdint.h>

#include "src/core/case.h"
#include "src/plan/inputs.h"

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
/* add_*: element i of residual_out, x + residual rounded to f32 and to the dtype. */
double nb_truth_stored_sum(const struct nb_inputs *in, int64_t i);
/* One row of any numbers of magnitude 0 or 2^-300 to 2^300, of which the statistics see the first n. */
void nb_truth_of_row(struct nb_row_truth *t, const struct nb_case *c, const double *x, int64_t n);
void nb_truth_fill(struct nb_row_truth *truth, int64_t n_truth, const struct nb_case *c, const struct nb_inputs *in);

#endif
