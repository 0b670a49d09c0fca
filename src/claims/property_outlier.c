// SPDX-License-Identifier: Apache-2.0
/* One extreme value among normal ones: how much does it change what a norm makes of the others? By how much their largest magnitude
 * changes relative to what it is without the spike: in its own row, and in its own column (where BatchNorm has its statistics). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/log.h"

static int normalized(const struct nb_property_call *call, const double *x, int64_t rows, int64_t cols, double *y) {
    const char *norm = nb_param_text(call, "norm");
    if (strcmp(norm, "minmax") != 0) return nb_norm_plain(call, norm, 1e-5, x, rows, cols, y, "changed");
    for (int64_t r = 0; r < rows; r++) nb_minmax(x + r * cols, cols, 1, y + r * cols); /* each row */
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

static void outlier_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols"), n = rows * cols;
    double *x = nb_norm_normal(n, 3 * n), *before = x + n, *after = before + n;
    int result = normalized(call, x, rows, cols, before);
    x[0] = nb_param_number(call, "spike");
    if (result == 0) result = normalized(call, x, rows, cols, after);
    if (result == 0) {
        const double row = fabs(1 - spread_kept(before, after, 0, 1, cols)),
                     column = fabs(1 - spread_kept(before, after, 0, cols, rows));
        nb_finding_tag(nb_property_add(call, "changed", "share", row), "where", "row");
        nb_finding_tag(nb_property_add(call, "changed", "share", column), "where", "column");
    }
    free(x);
}

const struct nb_property nb_property_outlier = {
    .name = "outlier",
    .summary = "what one extreme value does to the others",
    .params = {{"norm", "[\"rmsnorm_twopass\", \"layernorm_twopass\", \"batchnorm_twopass\", \"minmax\"]", "", false},
               {"spike", "[10, 100, 1000]", "in standard deviations", false},
               {"rows", "64", "", true},
               {"cols", "512", "", true}},
    .each = {{"norm", "norm"}, {"spike", "spike"}},
    .run = outlier_run,
};
