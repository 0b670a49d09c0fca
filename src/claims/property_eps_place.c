// SPDX-License-Identifier: Apache-2.0
/* eps inside the root, v + eps, against outside, sqrt(v) + eps: the gain |y / x| rms of rows of constant magnitude. In exact numbers
 * r / sqrt(r^2 + eps) and r / (r + eps). */
#include <math.h>
#include <stdlib.h>

#include "src/claims/property.h"
#include "src/core/log.h"

static double gain(const struct nb_property_call *call, enum nb_eps_place place) {
    const int64_t cols = nb_param_whole(call, "cols");
    const double rms = nb_param_number(call, "rms");
    double *x = nb_alloc(2 * (unsigned long long)cols, sizeof *x), *y = x + cols;
    for (int64_t i = 0; i < cols; i++) x[i] = i % 2 ? -rms : rms;
    struct nb_norm n = {.kernel = nb_param_text(call, "kernel"), .eps = nb_param_number(call, "eps")};
    n.formula.eps_place = place;
    const struct nb_matrix_view v = {.rows = 1, .cols = cols, .x = x};
    const double result = nb_norm_found(call, &n, &v, y, "gain") == 0 ? nb_rms_of(y, cols) : (double)NAN;
    free(x);
    return result;
}

static struct nb_finding *add(const struct nb_property_call *call, const char *name, double value) {
    const double rms = nb_param_number(call, "rms"), eps = nb_param_number(call, "eps");
    struct nb_finding *f = nb_property_add(call, name, "", value);
    nb_finding_tag(f, "size",
                   rms * rms <= 10 * eps     ? "near eps"
                   : rms * rms >= 1000 * eps ? "far above eps"
                                             : "above eps");
    return f;
}

static void eps_place_run(const struct nb_property_call *call) {
    const double inside = gain(call, NB_EPS_INSIDE), outside = gain(call, NB_EPS_OUTSIDE);
    if (isnan(inside) || isnan(outside)) return;
    nb_finding_tag(add(call, "gain", inside), "eps_place", "inside");
    nb_finding_tag(add(call, "gain", outside), "eps_place", "outside");
    add(call, "apart", fabs(outside - inside) / outside);
}

const struct nb_property nb_property_eps_place = {
    .name = "eps_place",
    .summary = "eps inside or outside the root",
    .params = {{"kernel", "\"rmsnorm_twopass\"", "", false},
               {"rms", "[0.1, 0.01, 3.16e-3, 1e-3, 1e-4]", "of the rows", false},
               {"eps", "[1e-5, 1e-6, 1e-8]", "", false},
               {"cols", "256", "", true}},
    .each = {{"rms", "rms"}, {"eps", "eps"}},
    .run = eps_place_run,
};
