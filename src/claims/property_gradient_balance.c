// SPDX-License-Identifier: Apache-2.0
/* Two features of different size in one linear model: how far do the gradients of their weights lie apart? Rows are samples; the
 * gradient of weight j is the root mean square over samples of error x_j, with errors of N(0,1). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/random.h"

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

static void gradient_balance_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "samples"), cols = nb_param_count(call, "features"), n = rows * cols;
    const char *norm = nb_param_text(call, "norm");
    double *x = nb_norm_normal(n, 2 * n), *y = x + n;
    int result = 0;
    for (int64_t i = 0; i < n; i++)
        x[i] = nb_param_number_at(call, "features", (int)(i % cols)) * (1 + nb_param_number(call, "spread") * x[i]);
    if (strcmp(norm, "minmax") == 0)
        for (int64_t c = 0; c < cols; c++) nb_minmax(x + c, rows, cols, y + c); /* each feature */
    else
        result = nb_norm_plain(call, norm, 1e-5, x, rows, cols, y, "gradient_ratio");
    if (result == 0) {
        nb_property_add(call, "gradient_ratio", "", ratio_of(y, rows, cols));
        nb_property_add(call, "rows_kept_apart", "share", kept(y, rows, cols));
    }
    free(x);
}

const struct nb_property nb_property_gradient_balance = {
    .name = "gradient_balance",
    .summary = "gradients of features of different size",
    .params = {{"features", "[10000, 30]", "mean of each: income, age", false},
               {"spread", "0.3", "standard deviation over the mean", false},
               {"norm", "[\"none\", \"minmax\", \"batchnorm_twopass\", \"layernorm_twopass\", \"rmsnorm_twopass\"]", "",
                false},
               {"samples", "1000", "", true}},
    .each = {{"norm", "norm"}},
    .run = gradient_balance_run,
};
