// SPDX-License-Identifier: Apache-2.0
/* The angle between a row and its norm, gamma 1 and beta 0. */
#include <math.h>
#include <stdlib.h>

#include "src/claims/norm_call.h"
#include "src/core/log.h"

static const struct nb_property_param params[] = {
    {"kernel", "[\"rmsnorm_twopass\", \"layernorm_twopass\"]", "", false},
    {"data", "[\"normal\"]", "", false},
    {"rows", "64", "", true},
    {"cols", "384", "", true},
    {"eps", "1e-6", "", false},
};

/* 1 - cos by |x/|x| - y/|y||^2 / 2, which keeps its digits near 0. */
static double turned(const double *x, const double *y, int64_t n) {
    const double rx = nb_rms_of(x, n), ry = nb_rms_of(y, n);
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += pow(x[i] / rx - y[i] / ry, 2);
    return squares / (double)n / 2;
}

static void try_one(const struct nb_property_call *call, const char *kernel, const char *data,
                    struct nb_findings *out) {
    char reason[300];
    const int64_t rows = (int64_t)nb_param_number(call, "rows"), cols = (int64_t)nb_param_number(call, "cols");
    double *x = nb_norm_rows(data, rows, cols, 1, reason, sizeof reason), most = 0;
    if (!x) {
        nb_findings_add_missing(out, "turned", "%s", reason);
        return;
    }
    double *y = nb_alloc((unsigned long long)(rows * cols), sizeof *y);
    const struct nb_norm n = {.kernel = kernel, .eps = nb_param_number(call, "eps")};
    const struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x};
    if (nb_norm_found(&n, &v, y, "turned", out) == 0) {
        for (int64_t r = 0; r < rows; r++) most = fmax(most, turned(x + r * cols, y + r * cols, cols));
        struct nb_finding *f = nb_findings_add_exact(out, "turned", "", most);
        nb_finding_tag(f, "kernel", kernel);
        nb_finding_tag(f, "data", data);
    }
    free(x);
    free(y);
}

static void direction_run(const struct nb_property_call *call, struct nb_findings *out) {
    for (int k = 0; k < nb_param_count(call, "kernel"); k++)
        for (int d = 0; d < nb_param_count(call, "data"); d++)
            try_one(call, nb_param_text_at(call, "kernel", k), nb_param_text_at(call, "data", d), out);
}

const struct nb_property nb_property_direction = {
    .name = "direction",
    .summary = "how far a norm turns a row",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = direction_run,
};
