// SPDX-License-Identifier: Apache-2.0
/* How wrong an output is. The error of an element is (computed - exact) / ulp(exact), signed, a real number; ulp as nb_ulp()
 * defines it. NaN, Inf and lost zeros are counted, never turned into large numbers. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/bias.h"
#include "src/accuracy/bound.h"
#include "src/core/dtype.h"

#define NB_ULP_BUCKETS 16 /* |error| in ulp: [0, 1/2], (1/2, 1], (1, 2], (2, 4] ... */

struct nb_reproducer {
    int64_t row, col; /* -1: none */
    double got, want, x;
    double err_ulp, tolerance_ulp;
};

/* Of one parameter's gradient (f32), judged beside dx. */
struct nb_parameter_error {
    int64_t n;     /* elements compared; 0: the formula has no such gradient, or none that is a number */
    double ratio;  /* max of |error| / bound: above 1 fails; NaN where n is 0 */
    double norm_u; /* ||error|| / ||exact||, in 2^-24 */
};

struct nb_accuracy {
    int64_t n;                         /* elements compared */
    int64_t n_exceptional;             /* of them left out of the error figures: NaN, Inf, predicted losses */
    double max_ulp, mean_ulp, p99_ulp; /* of |error|, over the others; p99 from a histogram, to 1/32 of itself above */
    double bias_u;            /* mean of (|computed| - |exact|) / |exact| over |exact| > 2^-10 rms(exact), in u */
    double correctly_rounded; /* share of elements equal to the rounded exact value */
    /* error = gain y + offset + residual by least squares, each of its worst row: gain in u, offset in u rms(y), both signed; root mean
     * square of the residual in ulp of max(|y|, rms(y)), since an offset that is fitted says nothing about an element near 0. */
    double gain_u, offset_u, residual_ulp;
    int64_t nan_unexpected, inf_unexpected, zero_unexpected; /* where the exact result is an ordinary number */
    int64_t nan_missing, inf_missing;                        /* the exact result is NaN or Inf, the computed is not */
    int64_t n_beyond;                                        /* elements beyond the bound, those five counts included */
    int64_t n_rows_lost;                                     /* rows whose loss the formula predicts */
    enum nb_loss loss;                                       /* the first such loss */
    double worst_ratio;                                      /* max of |error| / bound: above 1 fails */
    double bias_sigma; /* the larger of two tests, see nb_accuracy_judge_bias(); NaN where not predictable */
    int64_t histogram[NB_ULP_BUCKETS];
    struct nb_reproducer reproducer; /* the element with the largest |error| / bound */

    /* Worst row: largest |error| / what half an ulp of input noise does (yardstick.h), at least half an ulp of y; only of checks after which
     * nothing is timed. NaN: NaN or Inf where a number belongs, or no finite exact result. */
    bool has_ratios;
    double noise_ratio;

    /* Of a backward case: the figures above are those of dx, these stand beside it. */
    bool has_parameters;
    struct nb_parameter_error dgamma, dbeta, dalpha;

    /* What the judgement of the bias rests on: rows that gave a figure, elements with |exact| > rms / 4 that
     * are not subnormal, the bias over those alone and the standard deviation of its row means. */
    int64_t n_rows, n_large;
    double bias_large_u, bias_large_sd_u;
    /* One-sidedness of the last rounding, mean and standard deviation over rows: 0 to nearest, -0.5 truncated. */
    int64_t n_rounding_rows, n_rounding; /* rows that gave a figure, and their elements */
    double rounding_ulp, rounding_sd_ulp;
};

/* The largest error / bound of the parameters' gradients; NaN: there are none. */
double nb_accuracy_parameters_ratio(const struct nb_accuracy *a);

struct nb_accuracy_sum; /* running sums, opaque */
struct nb_accuracy_sum *nb_accuracy_new(enum nb_number number);
/* Of one row: computed and exact values, tolerances, the loss predicted; x: the input or null. */
struct nb_row_values {
    const void *stored, *stored_x;     /* elements of a dtype, */
    const double *numbers, *numbers_x; /* or numbers of any format held in double */
    const double *exact, *exact_low;   /* exact + exact_low, which f64 outputs need; null: exact alone */
    const double *tolerance;
    enum nb_loss loss;
};
void nb_accuracy_row(struct nb_accuracy_sum *s, int64_t row, int64_t cols, const struct nb_row_values *v);
/* Fills out and frees s. bias_sigma is NaN then. */
void nb_accuracy_finish(struct nb_accuracy_sum *s, struct nb_accuracy *out);

/* Sets bias_sigma: how many standard deviations the bias is beyond what a correct kernel can have on independent random
 * data, the larger of two tests. Correct kernels stay below 6 in magnitude.
 *   the whole bias: bias_large_u against the expected one;
 *   the last rounding (f32): a truncating store takes half an ulp whatever the significand, a scale that is off takes an error
 *   proportional to it; a line through error in ulp against |y| / ulp separates them in each row, and its value at 0 is 0 for
 *   rounding to nearest. */
void nb_accuracy_judge_bias(struct nb_accuracy *a, enum nb_dtype dtype, const struct nb_bias *expected);

/* The same in the journal and in results.json (reports/schema/results.schema.json, "accuracy"). number: of the output judged; its name and
 * unit roundoff are written beside the figures that count in u. */
cJSON *nb_accuracy_to_json(const struct nb_accuracy *a, enum nb_number number);
int nb_accuracy_from_json(struct nb_accuracy *a, const cJSON *json); /* -1 after nb_error */
