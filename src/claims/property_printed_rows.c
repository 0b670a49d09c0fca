// SPDX-License-Identifier: Apache-2.0
/* Small demonstrations as they are printed: x - mean(x) alone, x / (std(x) + eps) alone, and whole norms, on given numbers, before and
 * after a shift and a factor; and how far a printed result is off, with the standard deviation over n - 1 or n. */
#include <math.h>
#include <string.h>

#include "src/claims/property.h"

enum { MOST = 64 };

static void centre(const double *x, int n, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i] - nb_mean_of(x, n);
}

static void scale(const double *x, int n, double eps, int lost, double *y) {
    const double std = sqrt(nb_variance_of(x, n) * n / (n - lost));
    for (int i = 0; i < n; i++) y[i] = x[i] / (std + eps);
}

static int apply(const struct nb_property_call *call, const char *map, const double *x, int n, double *y) {
    const double eps = nb_param_number(call, "eps");
    if (strcmp(map, "centre") == 0)
        centre(x, n, y);
    else if (strcmp(map, "scale") == 0)
        scale(x, n, eps, 1, y);
    else
        return nb_norm_plain(call, map, eps, x, 1, n, y, "change");
    return 0;
}

static void try_map(const struct nb_property_call *call, const char *map, const double *x, int n) {
    static const char *const under[] = {"shift", "factor"};
    double y[MOST], z[MOST], moved[MOST];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < n; i++)
            moved[i] = k == 0 ? x[i] + nb_param_number(call, "shift") : x[i] * nb_param_number(call, "factor");
        if (apply(call, map, x, n, y) != 0 || apply(call, map, moved, n, z) != 0) return;
        struct nb_finding *f = nb_property_add(call, "change", "", nb_largest_difference(y, z, n) / nb_rms_of(y, n));
        nb_finding_tag(f, "map", map);
        nb_finding_tag(f, "under", under[k]);
    }
}

static void printed_rows_run(const struct nb_property_call *call) {
    double x[MOST], y[MOST], printed[MOST];
    const int n = nb_param_count(call, "x") < MOST ? nb_param_count(call, "x") : MOST;
    for (int i = 0; i < n; i++) {
        x[i] = nb_param_number_at(call, "x", i);
        printed[i] = nb_param_number_at(call, "printed", i);
    }
    for (int i = 0; i < nb_param_count(call, "map"); i++) try_map(call, nb_param_text_at(call, "map", i), x, n);
    for (int lost = 0; lost < 2 && nb_param_count(call, "printed") == n; lost++) {
        scale(x, n, nb_param_number(call, "eps"), lost, y);
        nb_finding_tag(nb_property_add(call, "off_print", "", nb_largest_difference(y, printed, n)), "std_over",
                       lost ? "n - 1" : "n");
    }
}

const struct nb_property nb_property_printed_rows = {
    .name = "printed_rows",
    .summary = "printed demonstrations, shifted and scaled",
    .params = {{"x", "[0, 1, 2, 3]", "", false},
               {"map", "[\"centre\", \"scale\", \"layernorm_twopass\", \"rmsnorm_twopass\"]",
                "centre, scale, or kernels", false},
               {"shift", "10", "added to every element", false},
               {"factor", "10", "of every element", false},
               {"eps", "1e-5", "", false},
               {"printed", "[0, 0.7746, 1.5492, 2.3238]", "what the source prints for map `scale`", false}},
    .run = printed_rows_run,
};
