// SPDX-License-Identifier: Apache-2.0
/* Mean, variance and standard deviation of what a norm returns, with gamma 1 and beta 0. */
#include <math.h>
#include <stdlib.h>

#include "src/claims/norm_call.h"
#include "src/core/log.h"

static const struct nb_property_param params[] = {
    {"kernel", "[\"layernorm_twopass\"]", "", false},
    {"data", "[\"normal\"]", "", false},
    {"eps", "[1e-5]", "", false},
    {"rows", "20", "", true},
    {"cols", "512", "", true},
};

struct trial {
    const char *kernel, *data;
    double eps;
    int64_t rows, cols;
};

static void add(struct nb_findings *out, const char *name, double value, const struct trial *t) {
    struct nb_finding *f = nb_findings_add_exact(out, name, "", value);
    nb_finding_tag(f, "kernel", t->kernel);
    nb_finding_tag(f, "data", t->data);
    nb_finding_tag_number(f, "eps", t->eps);
}

static void try_one(const struct trial *t, struct nb_findings *out) {
    char reason[300];
    double *x = nb_norm_rows(t->data, t->rows, t->cols, 1, reason, sizeof reason), mean = 0, off = 0;
    if (!x) {
        nb_findings_add_missing(out, "std", "%s", reason);
        return;
    }
    double *y = nb_alloc((unsigned long long)(t->rows * t->cols), sizeof *y);
    const struct nb_norm n = {.kernel = t->kernel, .eps = t->eps};
    const struct nb_matrix_view v = {.rows = t->rows, .cols = t->cols, .x = x};
    if (nb_norm_found(&n, &v, y, "std", out) == 0) {
        for (int64_t r = 0; r < t->rows; r++) {
            mean = fmax(mean, fabs(nb_mean_of(y + r * t->cols, t->cols)));
            off = fmax(off, fabs(nb_variance_of(y + r * t->cols, t->cols) - 1));
        }
        add(out, "mean_off", mean, t);    /* largest |mean| of a row */
        add(out, "variance_off", off, t); /* largest |variance - 1| of a row */
        add(out, "std", sqrt(nb_variance_of(y, t->rows * t->cols)), t);
    }
    free(x);
    free(y);
}

static void moments_run(const struct nb_property_call *call, struct nb_findings *out) {
    struct trial t = {.rows = (int64_t)nb_param_number(call, "rows"), .cols = (int64_t)nb_param_number(call, "cols")};
    for (int k = 0; k < nb_param_count(call, "kernel"); k++)
        for (int d = 0; d < nb_param_count(call, "data"); d++)
            for (int e = 0; e < nb_param_count(call, "eps"); e++) {
                t.kernel = nb_param_text_at(call, "kernel", k);
                t.data = nb_param_text_at(call, "data", d);
                t.eps = nb_param_number_at(call, "eps", e);
                try_one(&t, out);
            }
}

const struct nb_property nb_property_moments = {
    .name = "moments",
    .summary = "mean and variance of what a norm returns",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = moments_run,
};
