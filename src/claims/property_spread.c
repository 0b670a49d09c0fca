// SPDX-License-Identifier: Apache-2.0
/* Differences between samples, before and after a norm: the variance between samples, by feature and on average; and how much the sizes
 * of samples (their rms) differ, as coefficient of variation. */
#include <math.h>
#include <stdlib.h>

#include "src/claims/norm_call.h"
#include "src/core/log.h"
#include "src/core/random.h"

static const struct nb_property_param params[] = {
    {"norm", "[\"batchnorm_twopass\", \"layernorm_twopass\", \"rmsnorm_twopass\"]", "", false},
    {"scale", "[0.5, 2]", "of the data", false},
    {"rows", "64", "samples, each of a size of its own, from 0.3 to 3 of the scale", true},
    {"cols", "128", "", true},
};

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

static void add(struct nb_findings *out, const char *name, double value, const char *norm, double scale) {
    struct nb_finding *f = nb_findings_add_exact(out, name, "", value);
    nb_finding_tag(f, "norm", norm);
    nb_finding_tag_number(f, "scale", scale);
}

static void try_norm(const char *norm, const double *x, int64_t rows, int64_t cols, double scale,
                     struct nb_findings *out) {
    double *y = nb_alloc((unsigned long long)(rows * cols), sizeof *y);
    const struct nb_norm n = {.kernel = norm, .eps = 1e-5};
    const struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x};
    if (nb_norm_found(&n, &v, y, "variance_kept", out) == 0) {
        add(out, "variance_kept", between(y, rows, cols) / between(x, rows, cols), norm, scale);
        add(out, "sizes_kept", size_variation(y, rows, cols) / size_variation(x, rows, cols), norm, scale);
    }
    free(y);
}

static void spread_run(const struct nb_property_call *call, struct nb_findings *out) {
    const int64_t rows = (int64_t)nb_param_number(call, "rows"), cols = (int64_t)nb_param_number(call, "cols");
    const struct nb_random random = nb_random_stream(1, 0);
    double *x = nb_alloc((unsigned long long)(rows * cols), sizeof *x);
    for (int s = 0; s < nb_param_count(call, "scale"); s++) {
        const double scale = nb_param_number_at(call, "scale", s);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++)
                x[r * cols + c] = scale * pow(10, (double)r / (double)(rows - 1) - 0.5) *
                                  nb_random_normal(random, (uint64_t)(r * cols + c));
        for (int i = 0; i < nb_param_count(call, "norm"); i++)
            try_norm(nb_param_text_at(call, "norm", i), x, rows, cols, scale, out);
    }
    free(x);
}

const struct nb_property nb_property_spread = {
    .name = "spread",
    .summary = "differences between samples, before and after",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = spread_run,
};
