// SPDX-License-Identifier: Apache-2.0
/* From outputs of correct kernels to what they keep to. */
#ifndef NB_TOLERANCE_CALIBRATE_H
#define NB_TOLERANCE_CALIBRATE_H

#include "src/lab/tolerance/tolerance_test.h"

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

#endif
