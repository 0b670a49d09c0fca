// SPDX-License-Identifier: Apache-2.0
/* Two features of different size in one linear model: how far do the gradients of their weights lie apart? Rows are samples; the
 * gradient of weight j is the root mean square over samples of error x_j, with errors of N(0,1). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/norm_call.h"
#include "src/core/log.h"
#include "src/core/random.h"

static const struct nb_property_param params[] = {
    {"features", "[10000, 30]", "mean of each: income, age", false},
    {"spread", "0.3", "standard deviation over the mean", false},
    {"norm", "[\"none\", \"minmax\", \"batchnorm_twopass\", \"layernorm_twopass\", \"rmsnorm_twopass\"]", "", false},
    {"samples", "1000", "", true},
};

/* Each feature to [0, 1]. */
static void minmax(const double *x, int64_t rows, int64_t cols, double *y) {
    for (int64_t c = 0; c < cols; c++) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t r = 0; r < rows; r++) {
            low = fmin(low, x[r * cols + c]);
            high = fmax(high, x[r * cols + c]);
        }
        for (int64_t r = 0; r < rows; r++) y[r * cols + c] = (x[r * cols + c] - low) / (high - low);
    }
}

static double ratio_of(const double *y, int64_t rows, int64_t cols) {
    const struct nb_random random = nb_random_stream(2, 0);
    double most = 0, least = INFINITY;
    for (int64_t c = 0; c < cols; c++) {
        double squares = 0;
        for (int64_t r = 0; r < rows; r++) squares += pow(nb_random_normal(random, (uint64_t)r) * y[r * cols + c], 2);
        most = fmax(most, sqrt(squares));
        least = fmin(least, sqrt(squares));
    }
    return most / least;
}

/* How many different rows are left, by sign alone: of two features LayerNorm keeps only which is the larger. */
static double kept(const double *y, int64_t rows, int64_t cols) {
    double n = 0;
    for (int64_t r = 1; r < rows; r++) n += nb_largest_difference(y, y + r * cols, cols) > 1e-3;
    return n / (double)(rows - 1);
}

static void try_norm(const char *norm, const double *x, int64_t rows, int64_t cols, struct nb_findings *out) {
    double *y = nb_alloc((unsigned long long)(rows * cols), sizeof *y);
    const struct nb_norm n = {.kernel = norm, .eps = 1e-5};
    const struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x};
    int result = 0;
    if (strcmp(norm, "none") == 0)
        memcpy(y, x, (size_t)(rows * cols) * sizeof *y);
    else if (strcmp(norm, "minmax") == 0)
        minmax(x, rows, cols, y);
    else
        result = nb_norm_found(&n, &v, y, "gradient_ratio", out);
    if (result == 0) {
        nb_finding_tag(nb_findings_add_exact(out, "gradient_ratio", "", ratio_of(y, rows, cols)), "norm", norm);
        nb_finding_tag(nb_findings_add_exact(out, "rows_kept_apart", "share", kept(y, rows, cols)), "norm", norm);
    }
    free(y);
}

static void gradient_balance_run(const struct nb_property_call *call, struct nb_findings *out) {
    const int64_t rows = (int64_t)nb_param_number(call, "samples"), cols = nb_param_count(call, "features");
    const struct nb_random random = nb_random_stream(1, 0);
    double *x = nb_alloc((unsigned long long)(rows * cols), sizeof *x);
    for (int64_t i = 0; i < rows * cols; i++)
        x[i] = nb_param_number_at(call, "features", (int)(i % cols)) *
               (1 + nb_param_number(call, "spread") * nb_random_normal(random, (uint64_t)i));
    for (int i = 0; i < nb_param_count(call, "norm"); i++)
        try_norm(nb_param_text_at(call, "norm", i), x, rows, cols, out);
    free(x);
}

const struct nb_property nb_property_gradient_balance = {
    .name = "gradient_balance",
    .summary = "gradients of features of different size",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = gradient_balance_run,
};
