// SPDX-License-Identifier: Apache-2.0
/* Two kernels on the same rows: how far do their results lie apart? With "centred" the rows lie on a grid and have a mean of
 * exactly 0. */
#include <math.h>
#include <stdlib.h>

#include "src/claims/norm_call.h"
#include "src/core/dtype.h"
#include "src/core/log.h"

static const struct nb_property_param params[] = {
    {"of", "\"rmsnorm_twopass\"", "", false},
    {"against", "\"layernorm_twopass\"", "", false},
    {"data", "[\"normal\"]", "", false},
    {"centred", "[0, 1]", "1: the mean of each row is taken away, exactly", false},
    {"rows", "32", "", true},
    {"cols", "512", "", true},
    {"eps", "1e-5", "", false},
};

/* On multiples of 2^-12, so that f32 holds each sum exactly; what the rounding of the mean leaves goes over the first elements. */
static void centre(double *row, int64_t n) {
    const double grid = 0x1p-12, mean = nb_mean_of(row, n);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        row[i] = rint((row[i] - mean) / grid) * grid;
        sum += row[i];
    }
    for (int64_t i = 0; sum != 0; i = (i + 1) % n) {
        const double step = copysign(fmin(grid, fabs(sum)), sum);
        row[i] -= step;
        sum -= step;
    }
}

static void compare(const double *y, const double *z, const struct nb_matrix_view *v, const char *data, bool centred,
                    struct nb_findings *out) {
    double ulps = 0;
    const double rms = nb_rms_of(z, v->rows * v->cols);
    for (int64_t i = 0; i < v->rows * v->cols; i++)
        ulps = fmax(ulps, fabs(y[i] - z[i]) / nb_ulp(fmax(fabs(z[i]), rms), NB_F32));
    struct nb_finding *f = nb_findings_add_exact(out, "apart_ulp", "ulp", ulps);
    nb_finding_tag(f, "data", data);
    nb_finding_tag(f, "centred", centred ? "yes" : "no");
    f = nb_findings_add_exact(out, "apart", "", nb_largest_difference(y, z, v->rows * v->cols) / rms);
    nb_finding_tag(f, "data", data);
    nb_finding_tag(f, "centred", centred ? "yes" : "no");
}

static void try_one(const struct nb_property_call *call, const char *data, bool centred, struct nb_findings *out) {
    char reason[300];
    const int64_t rows = (int64_t)nb_param_number(call, "rows"), cols = (int64_t)nb_param_number(call, "cols");
    double *x = nb_norm_rows(data, rows, cols, 1, reason, sizeof reason);
    if (!x) {
        nb_findings_add_missing(out, "apart", "%s", reason);
        return;
    }
    for (int64_t r = 0; r < rows && centred; r++) centre(x + r * cols, cols);
    double *y = nb_alloc(2 * (unsigned long long)(rows * cols), sizeof *y), *z = y + rows * cols;
    const struct nb_norm a = {.kernel = nb_param_text(call, "of"), .eps = nb_param_number(call, "eps")};
    const struct nb_norm b = {.kernel = nb_param_text(call, "against"), .eps = a.eps};
    const struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x};
    if (nb_norm_found(&a, &v, y, "apart", out) == 0 && nb_norm_found(&b, &v, z, "apart", out) == 0)
        compare(y, z, &v, data, centred, out);
    free(x);
    free(y);
}

static void same_result_run(const struct nb_property_call *call, struct nb_findings *out) {
    for (int d = 0; d < nb_param_count(call, "data"); d++)
        for (int c = 0; c < nb_param_count(call, "centred"); c++)
            try_one(call, nb_param_text_at(call, "data", d), nb_param_number_at(call, "centred", c) != 0, out);
}

const struct nb_property nb_property_same_result = {
    .name = "same_result",
    .summary = "two kernels on the same rows",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = same_result_run,
};
