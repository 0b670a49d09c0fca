// SPDX-License-Identifier: Apache-2.0
/* Does a norm keep the structure of the data? Within a row: the order of its elements (share of neighbours in sorted order that change
 * places). Between rows: their distances (correlation of the distances of all pairs, before and after). */
#include <math.h>
#include <stdlib.h>

#include "src/claims/property.h"
#include "src/core/log.h"

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

static void structure_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols");
    double *x = nb_norm_normal(rows * cols, 2 * rows * cols), *y = x + rows * cols;
    for (int64_t i = 0; i < rows * cols; i++) x[i] = pow(100, (double)(i / cols) / (double)(rows - 1) - 0.5) * x[i];
    if (nb_norm_plain(call, nb_param_text(call, "norm"), 1e-5, x, rows, cols, y, "inverted") == 0) {
        double *before = distances(x, rows, cols), *after = distances(y, rows, cols);
        nb_property_add(call, "inverted", "", inverted(x, y, rows, cols));
        nb_property_add(call, "distances_kept", "", correlation(before, after, rows * (rows - 1) / 2));
        free(before);
        free(after);
    }
    free(x);
}

const struct nb_property nb_property_structure = {
    .name = "structure",
    .summary = "order within rows, distances between them",
    .params = {{"norm", "[\"rmsnorm_twopass\", \"layernorm_twopass\", \"batchnorm_twopass\"]", "", false},
               {"rows", "48", "each of a size of its own, from 0.1 to 10", true},
               {"cols", "256", "", true}},
    .each = {{"norm", "norm"}},
    .run = structure_run,
};
