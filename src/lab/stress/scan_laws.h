// SPDX-License-Identifier: Apache-2.0
/* What theory says of a scan before it is made: laws of rounding-error growth. Errors in u rms(y) of the output, as in scan.h. */
#ifndef NB_SCAN_LAWS_H
#define NB_SCAN_LAWS_H

#include <cjson/cJSON.h>

#include "src/accuracy/statistics_error.h"
#include "src/lab/stress/scan.h"

struct nb_scan_theory {
    const struct nb_case *c;
    struct nb_arithmetic arithmetic; /* of the statistics */
    double n;                        /* elements that a statistic is taken over */
    double z_max;
    double eps;       /* as the statistics hold it */
    double u;         /* of x and y */
    bool centres;     /* is the mean subtracted? */
    bool squares_raw; /* are x themselves squared, not their distances from the mean? */
};
void nb_scan_theory_init(struct nb_scan_theory *t, const struct nb_scan *s);

/* Relative standard deviation of a sum of n positive terms, and of a few operations with it: chain^2 / (18 n) u_sum^2 + u_op^2 / 2 is
 * its square, since L = n / chain lanes err independently, each by a random walk of uniform roundings. */
double nb_law_sum_sd(const struct nb_scan_theory *t);
/* Mean relative error of a sum of squares of normal numbers by stagnation, in parts of itself: -0.0404 p0 (chain u)^1.5; NaN beyond
 * chain u = 1, where the law ends. */
double nb_law_sum_bias(double chain, double u);

/* "predicted" of a sweep, [{"name":.., "points":[[x, y] ..]} ..]: y at the given x. */
cJSON *nb_laws_over_rho(const struct nb_scan_theory *t, const double *rho, int n);
cJSON *nb_laws_over_eps(const struct nb_scan_theory *t, double scale, double rho, const double *eps, int n);
/* Names of the laws of the row's shared error over n, and one law at one n. */
enum nb_law_over_n { NB_LAW_WORST_CASE, NB_LAW_SQRT_N, NB_LAW_SD, NB_LAW_BIAS, NB_N_LAWS_OVER_N };
extern const char *const nb_law_over_n_names[NB_N_LAWS_OVER_N];
double nb_law_over_n(const struct nb_scan_theory *t, enum nb_law_over_n law);

#endif
