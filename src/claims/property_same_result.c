// SPDX-License-Identifier: Apache-2.0
/* Two kernels on the same rows: how far do their results lie apart? With "centred" the rows lie on a grid and have a mean of
 * exactly 0. */
#include <math.h>
#include <stdlib.h>

#include "src/claims/property.h"
#include "src/core/dtype.h"
#include "src/core/log.h"

/* On multiples of 2^-12, so that f32 holds each sum exactly; what the rounding of the mean leaves goes over the first elements. */
static void centre(double *row, int64_t n) {
    const double grid = 0x1p-12, mean = nb_mean_of(row, n);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        row[i] = rint((row[i] - mean) / grid) * grid;
        sum += row[i];
    }
    for (int64_t i = 0; sum != 0; i = (i + 1) % n) {
        const double step = copysign(fmin(grid, fabs(sum)), sum);
        row[i] -= step;
        sum -= step;
    }
}

static void add(const struct nb_property_call *call, const char *name, const char *unit, double value) {
    const bool centred = nb_param_number(call, "centred") != 0;
    nb_finding_tag(nb_property_add(call, name, unit, value), "centred", centred ? "yes" : "no");
}

static void same_result_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols"), n = rows * cols;
    const double eps = nb_param_number(call, "eps");
    double *x = nb_norm_rows(call, nb_param_text(call, "data"), rows, cols, "apart"), ulps = 0;
    if (!x) return;
    for (int64_t r = 0; r < rows && nb_param_number(call, "centred") != 0; r++) centre(x + r * cols, cols);
    double *y = nb_alloc(2 * (unsigned long long)n, sizeof *y), *z = y + n;
    if (nb_norm_plain(call, nb_param_text(call, "of"), eps, x, rows, cols, y, "apart") == 0 &&
        nb_norm_plain(call, nb_param_text(call, "against"), eps, x, rows, cols, z, "apart") == 0) {
        const double rms = nb_rms_of(z, n);
        for (int64_t i = 0; i < n; i++) ulps = fmax(ulps, fabs(y[i] - z[i]) / nb_ulp(fmax(fabs(z[i]), rms), NB_F32));
        add(call, "apart_ulp", "ulp", ulps);
        add(call, "apart", "", nb_largest_difference(y, z, n) / rms);
    }
    free(x);
    free(y);
}

const struct nb_property nb_property_same_result = {
    .name = "same_result",
    .summary = "two kernels on the same rows",
    .params = {{"of", "\"rmsnorm_twopass\"", "", false},
               {"against", "\"layernorm_twopass\"", "", false},
               {"data", "[\"normal\"]", "", false},
               {"centred", "[0, 1]", "1: the mean of each row is taken away, exactly", false},
               {"rows", "32", "", true},
               {"cols", "512", "", true},
               {"eps", "1e-5", "", false}},
    .each = {{"data", "data"}, {"centred", NULL}},
    .run = same_result_run,
};
