// SPDX-License-Identifier: Apache-2.0
/* Two tests of one-sided errors, in standard deviations of what chance gives; src/README.md derives them. */
#include <math.h>

#include "src/accuracy/accuracy.h"
#include "src/core/dtype.h"

/* Distance of v from the interval expected +- allowance, in sigma, with its sign. */
static double beyond(double v, double expected, double allowance, double sigma) {
    const double distance = fabs(v - expected) - allowance;
    return distance > 0 ? copysign(distance / sigma, v - expected) : 0;
}

static double whole_bias_sigma(const struct nb_accuracy *a, double u, const struct nb_bias *e) {
    const double scales = fmin((double)e->n_scales, (double)a->n_rows);
    const double own = e->element_sd / sqrt(fmin((double)a->n_large, e->n_elements));
    const double shared = fmax(e->scale_sd, a->bias_large_sd_u * u) / sqrt(scales);
    return beyond(a->bias_large_u * u, e->expected, e->systematic, hypot(own, shared));
}

/* Of rows that are rounded to nearest the intercept has 0.29 ulp sqrt(1 / n + mean^2 / n / variance) of |y| / ulp, which for
 * significands in [1, 2) is at most 1.6 ulp / sqrt(n); more is measured where other errors add to it. */
static double rounding_sigma(const struct nb_accuracy *a, const struct nb_bias *e) {
    const double rows = (double)a->n_rounding_rows, per_row = 1.6 / sqrt((double)a->n_rounding / rows);
    const double beside = fmax(0, a->rounding_sd_ulp * a->rounding_sd_ulp - per_row * per_row);
    const double scales = fmin(rows, (double)e->n_scales);
    const double sigma = hypot(sqrt(per_row * per_row / rows + beside / scales), e->rounding_shared_ulp);
    return beyond(a->rounding_ulp, 0, e->rounding_allowance_ulp, sigma);
}

void nb_accuracy_judge_bias(struct nb_accuracy *a, enum nb_dtype dtype, const struct nb_bias *expected) {
    a->bias_sigma = NAN;
    if (!expected->predictable || a->n_rows < 16 || a->n_large == 0) return;
    a->bias_sigma = whole_bias_sigma(a, nb_formats[dtype].unit_roundoff, expected);
    if (!expected->rounding_predictable || a->n_rounding_rows < 32) return;
    const double rounding = rounding_sigma(a, expected);
    if (fabs(rounding) > fabs(a->bias_sigma)) a->bias_sigma = rounding;
}
