// SPDX-License-Identifier: Apache-2.0
/* Medians, and intervals that hold without assuming a distribution. All functions but nb_sort() leave their input in its order. */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* An estimate with bounds; NaN in low and high: too few values for an interval at this level. */
struct nb_interval {
    double value, low, high;
};
#define NB_NO_INTERVAL ((struct nb_interval){NAN, NAN, NAN})
static inline struct nb_interval nb_exactly(double v) { return (struct nb_interval){v, v, v}; }
static inline struct nb_interval nb_interval_times(struct nb_interval v, double factor) { /* above 0 */
    return (struct nb_interval){factor * v.value, factor * v.low, factor * v.high};
}
/* 1 - v: what is saved where v is the ratio of two times. */
static inline struct nb_interval nb_interval_saved(struct nb_interval v) {
    return (struct nb_interval){1 - v.value, 1 - v.high, 1 - v.low};
}

/* In place, the smallest first. */
void nb_sort(double *v, size_t n);
double nb_median(const double *v, size_t n);
double nb_rms(const double *v, int64_t n); /* of the finite ones; 0 without any */
double nb_quantile(const double *v, size_t n, double q);
/* Hodges-Lehmann: median of all pairwise means, with exact two-sided signed-rank bounds at confidence (0.95): the bounds are
 * Walsh averages; null from n < 6 at 95 %. */
struct nb_interval nb_hodges_lehmann(const double *v, size_t n, double confidence);

/* ---- proportions ---- */

/* What k of n says of a probability: exact bounds (Clopper & Pearson 1934), each one-sided at its confidence. */

double nb_proportion_upper(int64_t k, int64_t n, double confidence); /* 1 for n = 0 */
double nb_proportion_lower(int64_t k, int64_t n, double confidence); /* 0 for n = 0 */
