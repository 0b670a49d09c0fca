// SPDX-License-Identifier: Apache-2.0
/* Sigmoid and tanh behind a layer, with and without a norm between: the mean of their derivative over its largest value, and the share
 * of units that are saturated (derivative below 1 % of the largest). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/norm_call.h"
#include "src/core/log.h"
#include "src/core/random.h"

static const struct nb_property_param params[] = {
    {"norm", "[\"none\", \"rmsnorm_twopass\", \"layernorm_twopass\", \"batchnorm_twopass\"]", "", false},
    {"scale", "[1, 10, 100]", "standard deviation of what reaches the norm", false},
    {"rows", "64", "", true},
    {"cols", "256", "", true},
};

/* Derivatives over their largest: 4 s (1 - s) and 1 - tanh^2. */
static double sigmoid_slope(double v) {
    const double e = exp(-fabs(v));
    return 4 * e / ((1 + e) * (1 + e));
}
static double tanh_slope(double v) { return 1 - tanh(v) * tanh(v); }

static void add(struct nb_findings *out, const char *name, double value, const char *norm, double scale,
                const char *function) {
    struct nb_finding *f = nb_findings_add_exact(out, name, "share", value);
    nb_finding_tag(f, "norm", norm);
    nb_finding_tag_number(f, "scale", scale);
    nb_finding_tag(f, "function", function);
}

static void add_function(struct nb_findings *out, const char *norm, double scale, const double *v, int64_t n,
                         const char *function, double (*slope)(double)) {
    double sum = 0, saturated = 0;
    for (int64_t i = 0; i < n; i++) {
        const double s = slope(v[i]);
        sum += s;
        saturated += s < 0.01;
    }
    add(out, "slope", sum / (double)n, norm, scale, function);
    add(out, "saturated", saturated / (double)n, norm, scale, function);
}

static void try_one(const struct nb_property_call *call, const char *norm, double scale, struct nb_findings *out) {
    const int64_t rows = (int64_t)nb_param_number(call, "rows"), cols = (int64_t)nb_param_number(call, "cols");
    const struct nb_random random = nb_random_stream(1, 0);
    double *x = nb_alloc(2 * (unsigned long long)(rows * cols), sizeof *x), *y = x + rows * cols;
    for (int64_t i = 0; i < rows * cols; i++) x[i] = scale * nb_random_normal(random, (uint64_t)i);
    const struct nb_norm n = {.kernel = norm, .eps = 1e-5};
    const struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x};
    int result = 0;
    if (strcmp(norm, "none") == 0)
        memcpy(y, x, (size_t)(rows * cols) * sizeof *y);
    else
        result = nb_norm_found(&n, &v, y, "slope", out);
    if (result == 0) {
        add_function(out, norm, scale, y, rows * cols, "sigmoid", sigmoid_slope);
        add_function(out, norm, scale, y, rows * cols, "tanh", tanh_slope);
    }
    free(x);
}

static void saturation_run(const struct nb_property_call *call, struct nb_findings *out) {
    for (int i = 0; i < nb_param_count(call, "norm"); i++)
        for (int j = 0; j < nb_param_count(call, "scale"); j++)
            try_one(call, nb_param_text_at(call, "norm", i), nb_param_number_at(call, "scale", j), out);
}

const struct nb_property nb_property_saturation = {
    .name = "saturation",
    .summary = "slopes of sigmoid and tanh behind a norm",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = saturation_run,
};
