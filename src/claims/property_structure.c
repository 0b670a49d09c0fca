// SPDX-License-Identifier: Apache-2.0
/* Does a norm keep the structure of the data? Within a row: the order of its elements (share of neighbours in sorted order that change
 * places). Between rows: their distances (correlation of the distances of all pairs, before and after). */
#include <math.h>
#include <stdlib.h>

#include "src/claims/norm_call.h"
#include "src/core/log.h"
#include "src/core/random.h"

static const struct nb_property_param params[] = {
    {"norm", "[\"rmsnorm_twopass\", \"layernorm_twopass\", \"batchnorm_twopass\"]", "", false},
    {"rows", "48", "each of a size of its own, from 0.1 to 10", true},
    {"cols", "256", "", true},
};

static double *distances(const double *v, int64_t rows, int64_t cols) {
    double *d = nb_alloc((unsigned long long)(rows * rows), sizeof *d);
    int64_t at = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < i; j++) {
            double squares = 0;
            for (int64_t c = 0; c < cols; c++) squares += pow(v[i * cols + c] - v[j * cols + c], 2);
            d[at++] = sqrt(squares);
        }
    return d;
}

static double correlation(const double *a, const double *b, int64_t n) {
    const double mean_a = nb_mean_of(a, n), mean_b = nb_mean_of(b, n);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (a[i] - mean_a) * (b[i] - mean_b);
    return sum / (double)n / sqrt(nb_variance_of(a, n) * nb_variance_of(b, n));
}

/* Share of pairs of columns of a row whose order changed. */
static double inverted(const double *x, const double *y, int64_t rows, int64_t cols) {
    double n = 0, pairs = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < cols; i++)
            for (int64_t j = 0; j < i; j++) {
                n += (x[r * cols + i] - x[r * cols + j]) * (y[r * cols + i] - y[r * cols + j]) < 0;
                pairs++;
            }
    return n / pairs;
}

static void add(struct nb_findings *out, const char *name, double value, const char *norm) {
    nb_finding_tag(nb_findings_add_exact(out, name, "", value), "norm", norm);
}

static void try_norm(const char *norm, const double *x, int64_t rows, int64_t cols, struct nb_findings *out) {
    double *y = nb_alloc((unsigned long long)(rows * cols), sizeof *y);
    const struct nb_norm n = {.kernel = norm, .eps = 1e-5};
    const struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x};
    if (nb_norm_found(&n, &v, y, "inverted", out) == 0) {
        double *before = distances(x, rows, cols), *after = distances(y, rows, cols);
        add(out, "inverted", inverted(x, y, rows, cols), norm);
        add(out, "distances_kept", correlation(before, after, rows * (rows - 1) / 2), norm);
        free(before);
        free(after);
    }
    free(y);
}

static void structure_run(const struct nb_property_call *call, struct nb_findings *out) {
    const int64_t rows = (int64_t)nb_param_number(call, "rows"), cols = (int64_t)nb_param_number(call, "cols");
    const struct nb_random random = nb_random_stream(1, 0);
    double *x = nb_alloc((unsigned long long)(rows * cols), sizeof *x);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            x[r * cols + c] =
                pow(100, (double)r / (double)(rows - 1) - 0.5) * nb_random_normal(random, (uint64_t)(r * cols + c));
    for (int i = 0; i < nb_param_count(call, "norm"); i++)
        try_norm(nb_param_text_at(call, "norm", i), x, rows, cols, out);
    free(x);
}

const struct nb_property nb_property_structure = {
    .name = "structure",
    .summary = "order within rows, distances between them",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = structure_run,
};
