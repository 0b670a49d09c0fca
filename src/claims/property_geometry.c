// SPDX-License-Identifier: Apache-2.0
/* What a norm does to rows as vectors, and to the layer behind it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/log.h"
#include "src/core/random.h"

/* direction. The angle between a row and its norm, gamma 1 and beta 0. */

/* 1 - cos by |x/|x| - y/|y||^2 / 2, which keeps its digits near 0. */
static double turned(const double *x, const double *y, int64_t n) {
    const double rx = nb_rms_of(x, n), ry = nb_rms_of(y, n);
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += pow(x[i] / rx - y[i] / ry, 2);
    return squares / (double)n / 2;
}

static void direction_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols");
    double *x freed = nb_norm_rows(call, nb_param_text(call, "data"), rows, cols, "turned"), most = 0;
    if (!x) return;
    double *y freed = nb_alloc((unsigned long long)(rows * cols), sizeof *y);
    if (nb_norm_plain(call, nb_param_text(call, "kernel"), nb_param_number(call, "eps"), x, rows, cols, y, "turned") ==
        0) {
        for (int64_t r = 0; r < rows; r++) most = fmax(most, turned(x + r * cols, y + r * cols, cols));
        nb_property_add(call, "turned", "", most);
    }
}

/* moments. Mean, variance and standard deviation of what a norm returns, with gamma 1 and beta 0. */

static void moments_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols");
    double *x freed = nb_norm_rows(call, nb_param_text(call, "data"), rows, cols, "std"), mean = 0, off = 0;
    if (!x) return;
    double *y freed = nb_alloc((unsigned long long)(rows * cols), sizeof *y);
    if (nb_norm_plain(call, nb_param_text(call, "kernel"), nb_param_number(call, "eps"), x, rows, cols, y, "std") ==
        0) {
        for (int64_t r = 0; r < rows; r++) {
            mean = fmax(mean, fabs(nb_mean_of(y + r * cols, cols)));
            off = fmax(off, fabs(nb_variance_of(y + r * cols, cols) - 1));
        }
        nb_property_add(call, "mean_off", "", mean);    /* largest |mean| of a row */
        nb_property_add(call, "variance_off", "", off); /* largest |variance - 1| of a row */
        nb_property_add(call, "std", "", sqrt(nb_variance_of(y, rows * cols)));
    }
}

/* structure. Does a norm keep the structure of the data? Within a row: the order of its elements (share of neighbours in sorted order that change
 * places). Between rows: their distances (correlation of the distances of all pairs, before and after). */

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
    double *x freed = nb_norm_normal(rows * cols, 2 * rows * cols), *y = x + rows * cols;
    for (int64_t i = 0; i < rows * cols; i++) x[i] = pow(100, (double)(i / cols) / (double)(rows - 1) - 0.5) * x[i];
    if (nb_norm_plain(call, nb_param_text(call, "norm"), 1e-5, x, rows, cols, y, "inverted") == 0) {
        double *before freed = distances(x, rows, cols), *after freed = distances(y, rows, cols);
        nb_property_add(call, "inverted", "", inverted(x, y, rows, cols));
        nb_property_add(call, "distances_kept", "", correlation(before, after, rows * (rows - 1) / 2));
    }
}

/* spread. Differences between samples, before and after a norm: the variance between samples, by feature and on average; and how much the sizes
 * of samples (their rms) differ, as coefficient of variation. */

static double between(const double *v, int64_t rows, int64_t cols) {
    double sum = 0, *column freed = nb_alloc((unsigned long long)rows, sizeof *column);
    for (int64_t c = 0; c < cols; c++) {
        for (int64_t r = 0; r < rows; r++) column[r] = v[r * cols + c];
        sum += nb_variance_of(column, rows) / (double)cols;
    }
    return sum;
}

static double size_variation(const double *v, int64_t rows, int64_t cols) {
    double *size freed = nb_alloc((unsigned long long)rows, sizeof *size);
    for (int64_t r = 0; r < rows; r++) size[r] = nb_rms_of(v + r * cols, cols);
    return sqrt(nb_variance_of(size, rows)) / nb_mean_of(size, rows);
}

static void spread_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols");
    const double scale = nb_param_number(call, "scale");
    double *x freed = nb_norm_normal(rows * cols, 2 * rows * cols), *y = x + rows * cols;
    for (int64_t i = 0; i < rows * cols; i++)
        x[i] = scale * pow(10, (double)(i / cols) / (double)(rows - 1) - 0.5) * x[i];
    if (nb_norm_plain(call, nb_param_text(call, "norm"), 1e-5, x, rows, cols, y, "variance_kept") == 0) {
        nb_property_add(call, "variance_kept", "", between(y, rows, cols) / between(x, rows, cols));
        nb_property_add(call, "sizes_kept", "", size_variation(y, rows, cols) / size_variation(x, rows, cols));
    }
}

/* outlier. One extreme value among normal ones: how much does it change what a norm makes of the others? By how much their largest magnitude
 * changes relative to what it is without the spike: in its own row, and in its own column (where BatchNorm has its statistics). */

static int normalized(const struct nb_property_call *call, const double *x, int64_t rows, int64_t cols, double *y) {
    const char *norm = nb_param_text(call, "norm");
    if (strcmp(norm, "minmax") != 0) return nb_norm_plain(call, norm, 1e-5, x, rows, cols, y, "changed");
    for (int64_t r = 0; r < rows; r++) nb_minmax(x + r * cols, cols, 1, y + r * cols); /* each row */
    return 0;
}

/* Standard deviation of the others after over before: 1 where the spike changes nothing. */
static double spread_kept(const double *before, const double *after, int64_t first, int64_t step, int64_t n) {
    double *b freed = nb_alloc(2 * (unsigned long long)n, sizeof *b), *a = b + n;
    for (int64_t i = 1; i < n; i++) { /* element 0 is the spike */
        b[i - 1] = before[first + i * step];
        a[i - 1] = after[first + i * step];
    }
    return sqrt(nb_variance_of(a, n - 1) / nb_variance_of(b, n - 1));
}

static void outlier_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols"), n = rows * cols;
    double *x freed = nb_norm_normal(n, 3 * n), *before = x + n, *after = before + n;
    int result = normalized(call, x, rows, cols, before);
    x[0] = nb_param_number(call, "spike");
    if (result == 0) result = normalized(call, x, rows, cols, after);
    if (result == 0) {
        const double row = fabs(1 - spread_kept(before, after, 0, 1, cols)),
                     column = fabs(1 - spread_kept(before, after, 0, cols, rows));
        nb_finding_tag(nb_property_add(call, "changed", "share", row), "where", "row");
        nb_finding_tag(nb_property_add(call, "changed", "share", column), "where", "column");
    }
}

/* saturation. Sigmoid and tanh behind a layer, with and without a norm between: the mean of their derivative over its largest value, and the share
 * of units that are saturated (derivative below 1 % of the largest). */

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
    double *x freed = nb_norm_normal(n, 2 * n), *y = x + n;
    for (int64_t i = 0; i < n; i++) x[i] = nb_param_number(call, "scale") * x[i];
    if (nb_norm_plain(call, nb_param_text(call, "norm"), 1e-5, x, rows, cols, y, "slope") == 0) {
        add_function(call, y, n, "sigmoid", sigmoid_slope);
        add_function(call, y, n, "tanh", tanh_slope);
    }
}

/* linear_stack. x -> relu(W x + b), layer after layer, weights and biases uniform within 1 / sqrt(n) as nn.Linear begins with, and a norm behind
 * each or none: the standard deviation of what comes out. */

/* out = relu(in W^T + b); the stream is the layer's own. */
static void linear_relu(const double *in, double *out, int64_t rows, int64_t n, struct nb_random random) {
    const double bound = 1 / sqrt((double)n);
    double *w freed = nb_alloc((unsigned long long)(n * n), sizeof *w);
    for (int64_t i = 0; i < n * n; i++) w[i] = bound * (2 * nb_random_open(random, (uint64_t)(n + i)) - 1);
    for (int64_t r = 0; r < rows; r++) {
        double *y = out + r * n;
        for (int64_t j = 0; j < n; j++) y[j] = bound * (2 * nb_random_open(random, (uint64_t)j) - 1);
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < n; j++) y[j] += in[r * n + k] * w[k * n + j];
        for (int64_t j = 0; j < n; j++) y[j] = fmax(y[j], 0);
    }
}

static void linear_stack_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols"), n = rows * cols;
    const int64_t layers = nb_param_whole(call, "layers");
    double *x freed = nb_norm_normal(n, 2 * n), *y = x + n;
    for (int64_t layer = 1; layer <= layers; layer++) {
        linear_relu(x, y, rows, cols, nb_random_stream((uint64_t)nb_param_number(call, "seed"), (uint64_t)layer));
        if (nb_norm_plain(call, nb_param_text(call, "norm"), 1e-5, y, rows, cols, x, "std") != 0) break;
        struct nb_finding *f = nb_property_add(call, "std", "", sqrt(nb_variance_of(x, n)));
        nb_finding_tag_number(f, "layer", (double)layer);
    }
}

const struct nb_property nb_property_geometry[] = {
    {"direction",
     "how far a norm turns a row",
     direction_run,
     {{"kernel", "[\"rmsnorm_twopass\", \"layernorm_twopass\"]", "", false, "kernel"},
      {"data", "[\"normal\"]", "", false, "data"},
      {"rows", "64", "", true, NULL},
      {"cols", "384", "", true, NULL},
      {"eps", "1e-6", "", false, NULL}}},
    {"moments",
     "mean and variance of what a norm returns",
     moments_run,
     {{"kernel", "[\"layernorm_twopass\"]", "", false, "kernel"},
      {"data", "[\"normal\"]", "", false, "data"},
      {"eps", "[1e-5]", "", false, "eps"},
      {"rows", "20", "", true, NULL},
      {"cols", "512", "", true, NULL}}},
    {"structure",
     "order within rows, distances between them",
     structure_run,
     {{"norm", "[\"rmsnorm_twopass\", \"layernorm_twopass\", \"batchnorm_twopass\"]", "", false, "norm"},
      {"rows", "48", "each of a size of its own, from 0.1 to 10", true, NULL},
      {"cols", "256", "", true, NULL}}},
    {"spread",
     "differences between samples, before and after",
     spread_run,
     {{"norm", "[\"batchnorm_twopass\", \"layernorm_twopass\", \"rmsnorm_twopass\"]", "", false, "norm"},
      {"scale", "[0.5, 2]", "of the data", false, "scale"},
      {"rows", "64", "samples, each of a size of its own, from 0.3 to 3 of the scale", true, NULL},
      {"cols", "128", "", true, NULL}}},
    {"outlier",
     "what one extreme value does to the others",
     outlier_run,
     {{"norm", "[\"rmsnorm_twopass\", \"layernorm_twopass\", \"batchnorm_twopass\", \"minmax\"]", "", false, "norm"},
      {"spike", "[10, 100, 1000]", "in standard deviations", false, "spike"},
      {"rows", "64", "", true, NULL},
      {"cols", "512", "", true, NULL}}},
    {"saturation",
     "slopes of sigmoid and tanh behind a norm",
     saturation_run,
     {{"norm", "[\"none\", \"rmsnorm_twopass\", \"layernorm_twopass\", \"batchnorm_twopass\"]", "", false, "norm"},
      {"scale", "[1, 10, 100]", "standard deviation of what reaches the norm", false, "scale"},
      {"rows", "64", "", true, NULL},
      {"cols", "256", "", true, NULL}}},
    {"linear_stack",
     "activations of 10 x (Linear + ReLU), with and without a norm",
     linear_stack_run,
     {{"norm", "[\"none\", \"rmsnorm_twopass\"]", "", false, "norm"},
      {"seed", "[1, 2, 3]", "of the weights", false, "seed"},
      {"layers", "10", "", true, NULL},
      {"rows", "100", "", true, NULL},
      {"cols", "512", "", true, NULL}}},
    {.name = NULL}};
