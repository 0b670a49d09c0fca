// SPDX-License-Identifier: Apache-2.0
/* The line atol + rtol |y| above a cloud of points (|y|, allowed error) that is lowest at a given |y|. */
#ifndef NB_TOLERANCE_TEST_H
#define NB_TOLERANCE_TEST_H

#include <stdint.h>

#include "src/accuracy/oracle.h"
#include "src/core/case.h"
#include "src/lab/tolerance/tolerance.h"

/* Points in bins of |y|, 256 to the octave; each bin keeps its largest error and counts it at its smallest |y|. */
struct nb_cloud {
    double *largest;
    double sum_squares;
    int64_t n;
};
void nb_cloud_init(struct nb_cloud *c);
void nb_cloud_add(struct nb_cloud *c, double y, double error);
double nb_cloud_rms(const struct nb_cloud *c);
/* Not negative; both rounded up to three digits. */
void nb_cloud_line(const struct nb_cloud *c, double *rtol, double *atol);
void nb_cloud_release(struct nb_cloud *c);

/* v rounded up to three significant decimal digits. */
double nb_round_up(double v);

/* ---- One test as somebody would write it: some rows, what the exact outputs are, and how far a correct kernel may be off each ---- */

struct nb_tolerance_test {
    struct nb_design_rows rows;
    struct nb_case c;
    int64_t n;                      /* elements */
    double *exact, *want, *allowed; /* want: what the output is compared with; allowed: |got - want| */
    double *gamma, *beta;           /* borrowed from rows; null for 1 and 0 */
    bool *usable;                   /* false: a loss is predicted, and any value is right */
    struct nb_row_truth *truth;     /* by row */
    int64_t n_lost;
};

/* How many tests the data has: of a distribution as many as one likes (INT64_MAX), of a file what its rows suffice for. -1 after
 * nb_error. */
int64_t nb_tolerance_tests(const struct nb_tolerance_request *request);
/* Test number `index`, with the bound for a chain of so many roundings. -1 after nb_error. */
int nb_tolerance_test_init(struct nb_tolerance_test *t, const struct nb_tolerance_request *request, int64_t chain,
                           int64_t index);
void nb_tolerance_test_release(struct nb_tolerance_test *t);

/* ---- Does an output pass a criterion? ---- */

/* Appends the criteria in common use for outputs of the format. */
void nb_criteria_in_use(struct nb_tolerance *t, enum nb_number store);
/* A test of rows x cols outputs; usable: null, or false for elements that no criterion looks at. True: it fails. */
bool nb_criterion_alarms(const struct nb_criterion *c, enum nb_number store, int64_t rows, int64_t cols,
                         const double *got, const double *want, const bool *usable);
/* Mean over |want| > rms(want) / 4 of each row of (|got| - |want|) / |want|; NaN without such elements. */
double nb_mean_error(int64_t rows, int64_t cols, const double *got, const double *want, const bool *usable);

void nb_rate_count(struct nb_rate *rate, bool seen);
void nb_rate_finish(struct nb_rate *rate);

/* ---- From outputs of correct kernels to what they keep to ---- */

/* Largest |error| / derived tolerance of a test. */
double nb_tolerance_largest_share(const struct nb_criterion *derived, const struct nb_tolerance_test *test,
                                  const double *got);
/* The share of the derived tolerance that so many tests of a kernel exceed that no more than `alarm` of all do, at 95 %. Where
 * there are too few tests to say so: the largest seen. */
double nb_tolerance_share_for(double *worst, int64_t n, double alarm);
/* The mean error of a test is a sum of many small ones: |mean| and six standard deviations, as measured. NaN: fewer than 8 tests. */
double nb_tolerance_mean_error_limit(const double *errors, int64_t n);
/* 99 % of the tests; of fewer than 100 all. */
double nb_tolerance_high_quantile(double *v, int64_t n);

/* ---- The smallest error of the scale, or shift of all outputs, that a criterion sees ---- */

enum nb_fault_kind { NB_FAULT_GAIN, NB_FAULT_OFFSET };

/* Of one test: the exact outputs times 1 + g, or plus g rms(y), rounded to the store; g is found by bisection to 5 %.
 * Infinity: 1 is not seen; 0: the exact outputs,
 * rounded, fail already. */
double nb_least_seen(const struct nb_criterion *c, enum nb_number store, const struct nb_tolerance_test *t,
                     enum nb_fault_kind kind);

#endif
