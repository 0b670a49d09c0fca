// SPDX-License-Identifier: Apache-2.0
/* One extreme value among normal ones: how much does it change what a norm makes of the others? By how much their largest magnitude
 * changes relative to what it is without the spike: in its own row, and in its own column (where BatchNorm has its statistics). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/norm_call.h"
#include "src/core/log.h"
#include "src/core/random.h"

static const struct nb_property_param params[] = {
    {"norm", "[\"rmsnorm_twopass\", \"layernorm_twopass\", \"batchnorm_twopass\", \"minmax\"]", "", false},
    {"spike", "[10, 100, 1000]", "in standard deviations", false},
    {"rows", "64", "", true},
    {"cols", "512", "", true},
};

/* Each row to [0, 1]. */
static void minmax(const double *x, int64_t rows, int64_t cols, double *y) {
    for (int64_t r = 0; r < rows; r++) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t c = 0; c < cols; c++) {
            low = fmin(low, x[r * cols + c]);
            high = fmax(high, x[r * cols + c]);
        }
        for (int64_t c = 0; c < cols; c++) y[r * cols + c] = (x[r * cols + c] - low) / (high - low);
    }
}

static int normalized(const char *norm, const struct nb_matrix_view *v, double *y, struct nb_findings *out) {
    const struct nb_norm n = {.kernel = norm, .eps = 1e-5};
    if (strcmp(norm, "minmax") != 0) return nb_norm_found(&n, v, y, "changed", out);
    minmax(v->x, v->rows, v->cols, y);
    return 0;
}

/* Standard deviation of the others after over before: 1 where the spike changes nothing. */
static double spread_kept(const double *before, const double *after, int64_t first, int64_t step, int64_t n) {
    double *b = nb_alloc(2 * (unsigned long long)n, sizeof *b), *a = b + n;
    for (int64_t i = 1; i < n; i++) { /* element 0 is the spike */
        b[i - 1] = before[first + i * step];
        a[i - 1] = after[first + i * step];
    }
    const double kept = sqrt(nb_variance_of(a, n - 1) / nb_variance_of(b, n - 1));
    free(b);
    return kept;
}

static void add(struct nb_findings *out, const char *norm, double spike, const char *where, double kept) {
    struct nb_finding *f = nb_findings_add_exact(out, "changed", "share", fabs(1 - kept));
    nb_finding_tag(f, "norm", norm);
    nb_finding_tag_number(f, "spike", spike);
    nb_finding_tag(f, "where", where);
}

static void try_one(const struct nb_property_call *call, const char *norm, double spike, struct nb_findings *out) {
    const int64_t rows = (int64_t)nb_param_number(call, "rows"), cols = (int64_t)nb_param_number(call, "cols");
    const struct nb_random random = nb_random_stream(1, 0);
    double *x = nb_alloc(3 * (unsigned long long)(rows * cols), sizeof *x), *before = x + rows * cols,
           *after = before + rows * cols;
    for (int64_t i = 0; i < rows * cols; i++) x[i] = nb_random_normal(random, (uint64_t)i);
    const struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x};
    int result = normalized(norm, &v, before, out);
    x[0] = spike;
    if (result == 0) result = normalized(norm, &v, after, out);
    if (result == 0) {
        add(out, norm, spike, "row", spread_kept(before, after, 0, 1, cols));
        add(out, norm, spike, "column", spread_kept(before, after, 0, cols, rows));
    }
    free(x);
}

static void outlier_run(const struct nb_property_call *call, struct nb_findings *out) {
    for (int i = 0; i < nb_param_count(call, "norm"); i++)
        for (int j = 0; j < nb_param_count(call, "spike"); j++)
            try_one(call, nb_param_text_at(call, "norm", i), nb_param_number_at(call, "spike", j), out);
}

const struct nb_property nb_property_outlier = {
    .name = "outlier",
    .summary = "what one extreme value does to the others",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = outlier_run,
};
