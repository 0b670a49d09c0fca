// SPDX-License-Identifier: Apache-2.0
/* Sigmoid and tanh behind a layer, with and without a norm between: the mean of their derivative over its largest value, and the share
 * of units that are saturated (derivative below 1 % of the largest). */
#include <math.h>
#include <stdlib.h>

#include "src/claims/property.h"

/* Derivatives over their largest: 4 s (1 - s) and 1 - tanh^2. */
static double sigmoid_slope(double v) {
    const double e = exp(-fabs(v));
    return 4 * e / ((1 + e) * (1 + e));
}
static double tanh_slope(double v) { return 1 - tanh(v) * tanh(v); }

static void add_function(const struct nb_property_call *call, const double *v, int64_t n, const char *function,
                         double (*slope)(double)) {
    double sum = 0, saturated = 0;
    for (int64_t i = 0; i < n; i++) {
        const double s = slope(v[i]);
        sum += s;
        saturated += s < 0.01;
    }
    nb_finding_tag(nb_property_add(call, "slope", "share", sum / (double)n), "function", function);
    nb_finding_tag(nb_property_add(call, "saturated", "share", saturated / (double)n), "function", function);
}

static void saturation_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols"), n = rows * cols;
    double *x = nb_norm_normal(n, 2 * n), *y = x + n;
    for (int64_t i = 0; i < n; i++) x[i] = nb_param_number(call, "scale") * x[i];
    if (nb_norm_plain(call, nb_param_text(call, "norm"), 1e-5, x, rows, cols, y, "slope") == 0) {
        add_function(call, y, n, "sigmoid", sigmoid_slope);
        add_function(call, y, n, "tanh", tanh_slope);
    }
    free(x);
}

const struct nb_property nb_property_saturation = {
    .name = "saturation",
    .summary = "slopes of sigmoid and tanh behind a norm",
    .params = {{"norm", "[\"none\", \"rmsnorm_twopass\", \"layernorm_twopass\", \"batchnorm_twopass\"]", "", false},
               {"scale", "[1, 10, 100]", "standard deviation of what reaches the norm", false},
               {"rows", "64", "", true},
               {"cols", "256", "", true}},
    .each = {{"norm", "norm"}, {"scale", "scale"}},
    .run = saturation_run,
};
