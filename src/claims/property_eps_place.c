// SPDX-License-Identifier: Apache-2.0
/* eps inside the root, v + eps, against outside, sqrt(v) + eps: the gain |y / x| rms of rows of constant magnitude. In exact numbers
 * r / sqrt(r^2 + eps) and r / (r + eps). */
#include <math.h>
#include <stdlib.h>

#include "src/claims/norm_call.h"
#include "src/core/log.h"

static const struct nb_property_param params[] = {
    {"kernel", "\"rmsnorm_twopass\"", "", false},
    {"rms", "[0.1, 0.01, 3.16e-3, 1e-3, 1e-4]", "of the rows", false},
    {"eps", "[1e-5, 1e-6, 1e-8]", "", false},
    {"cols", "256", "", true},
};

static double gain(const char *kernel, double rms, double eps, enum nb_eps_place place, int64_t cols,
                   struct nb_findings *out) {
    double *x = nb_alloc(2 * (unsigned long long)cols, sizeof *x), *y = x + cols;
    for (int64_t i = 0; i < cols; i++) x[i] = i % 2 ? -rms : rms;
    struct nb_norm n = {.kernel = kernel, .eps = eps};
    n.formula.eps_place = place;
    const struct nb_matrix_view v = {.rows = 1, .cols = cols, .x = x};
    const double result = nb_norm_found(&n, &v, y, "gain", out) == 0 ? nb_rms_of(y, cols) : (double)NAN;
    free(x);
    return result;
}

static struct nb_finding *add(struct nb_findings *out, const char *name, double value, double rms, double eps) {
    struct nb_finding *f = nb_findings_add_exact(out, name, "", value);
    nb_finding_tag_number(f, "rms", rms);
    nb_finding_tag_number(f, "eps", eps);
    nb_finding_tag(f, "size",
                   rms * rms <= 10 * eps     ? "near eps"
                   : rms * rms >= 1000 * eps ? "far above eps"
                                             : "above eps");
    return f;
}

static void eps_place_run(const struct nb_property_call *call, struct nb_findings *out) {
    const int64_t cols = (int64_t)nb_param_number(call, "cols");
    const char *kernel = nb_param_text(call, "kernel");
    for (int i = 0; i < nb_param_count(call, "rms"); i++)
        for (int j = 0; j < nb_param_count(call, "eps"); j++) {
            const double rms = nb_param_number_at(call, "rms", i), eps = nb_param_number_at(call, "eps", j);
            const double inside = gain(kernel, rms, eps, NB_EPS_INSIDE, cols, out);
            const double outside = gain(kernel, rms, eps, NB_EPS_OUTSIDE, cols, out);
            if (isnan(inside) || isnan(outside)) continue;
            nb_finding_tag(add(out, "gain", inside, rms, eps), "eps_place", "inside");
            nb_finding_tag(add(out, "gain", outside, rms, eps), "eps_place", "outside");
            add(out, "apart", fabs(outside - inside) / outside, rms, eps);
        }
}

const struct nb_property nb_property_eps_place = {
    .name = "eps_place",
    .summary = "eps inside or outside the root",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = eps_place_run,
};
