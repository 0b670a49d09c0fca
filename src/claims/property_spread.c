// SPDX-License-Identifier: Apache-2.0
/* Differences between samples, before and after a norm: the variance between samples, by feature and on average; and how much the sizes
 * of samples (their rms) differ, as coefficient of variation. */
#include <math.h>
#include <stdlib.h>

#include "src/claims/property.h"
#include "src/core/log.h"

static double between(const double *v, int64_t rows, int64_t cols) {
    double sum = 0, *column = nb_alloc((unsigned long long)rows, sizeof *column);
    for (int64_t c = 0; c < cols; c++) {
        for (int64_t r = 0; r < rows; r++) column[r] = v[r * cols + c];
        sum += nb_variance_of(column, rows) / (double)cols;
    }
    free(column);
    return sum;
}

static double size_variation(const double *v, int64_t rows, int64_t cols) {
    double *size = nb_alloc((unsigned long long)rows, sizeof *size);
    for (int64_t r = 0; r < rows; r++) size[r] = nb_rms_of(v + r * cols, cols);
    const double variation = sqrt(nb_variance_of(size, rows)) / nb_mean_of(size, rows);
    free(size);
    return variation;
}

static void spread_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols");
    const double scale = nb_param_number(call, "scale");
    double *x = nb_norm_normal(rows * cols, 2 * rows * cols), *y = x + rows * cols;
    for (int64_t i = 0; i < rows * cols; i++)
        x[i] = scale * pow(10, (double)(i / cols) / (double)(rows - 1) - 0.5) * x[i];
    if (nb_norm_plain(call, nb_param_text(call, "norm"), 1e-5, x, rows, cols, y, "variance_kept") == 0) {
        nb_property_add(call, "variance_kept", "", between(y, rows, cols) / between(x, rows, cols));
        nb_property_add(call, "sizes_kept", "", size_variation(y, rows, cols) / size_variation(x, rows, cols));
    }
    free(x);
}

const struct nb_property nb_property_spread = {
    .name = "spread",
    .summary = "differences between samples, before and after",
    .params = {{"norm", "[\"batchnorm_twopass\", \"layernorm_twopass\", \"rmsnorm_twopass\"]", "", false},
               {"scale", "[0.5, 2]", "of the data", false},
               {"rows", "64", "samples, each of a size of its own, from 0.3 to 3 of the scale", true},
               {"cols", "128", "", true}},
    .each = {{"scale", "scale"}, {"norm", "norm"}},
    .run = spread_run,
};
