// SPDX-License-Identifier: Apache-2.0
/* Order statistics of few numbers. */
#include "src/lab/tolerance/tolerance_calibrate.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/stats.h"

double nb_tolerance_largest_share(const struct nb_criterion *derived, const struct nb_tolerance_test *test,
                                  const double *got) {
    double worst = 0;
    for (int64_t i = 0; i < test->n; i++) {
        if (!test->usable[i] || got[i] == test->want[i]) continue;
        const double share = fabs(got[i] - test->want[i]) / (derived->atol + derived->rtol * fabs(test->want[i]));
        if (!(share <= worst)) worst = isnan(share) ? (double)INFINITY : share;
    }
    return worst;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double nb_tolerance_share_for(double *worst, int64_t n, double alarm) {
    qsort(worst, (size_t)n, sizeof *worst, ascending);
    int64_t beyond = 0;
    while (beyond + 1 < n && nb_proportion_upper(beyond + 1, n, 0.95) <= alarm) beyond++;
    return worst[n - 1 - beyond];
}

double nb_tolerance_mean_error_limit(const double *errors, int64_t n) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += errors[i] / (double)n;
    for (int64_t i = 0; i < n; i++) squares += (errors[i] - sum) * (errors[i] - sum);
    return n < 8 ? NAN : fabs(sum) + 6 * sqrt(squares / (double)(n - 1));
}

double nb_tolerance_high_quantile(double *v, int64_t n) {
    qsort(v, (size_t)n, sizeof *v, ascending);
    return v[(int64_t)ceil(0.99 * (double)n) - 1];
}
