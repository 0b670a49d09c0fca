// SPDX-License-Identifier: Apache-2.0
/* normalized_shape of one and of several dimensions: a kernel, which takes its statistics over all of them as nn.RMSNorm does,
 * against a hand-written class that takes the mean over the last dimension alone. */
#include <stdio.h>
#include <stdlib.h>

#include "src/claims/norm_call.h"
#include "src/core/log.h"
#include "src/core/random.h"

static const struct nb_property_param params[] = {
    {"kernel", "\"rmsnorm_twopass\"", "", false},
    {"rows", "4", "", true},
    {"shape", "[\"[6]\", \"[2x3]\"]", "normalized_shape, as shapes have it", false},
};

/* The last dimension of "[2x3]", and the product of all. */
static int dimensions(const char *text, int64_t *all, int64_t *last, int *n) {
    *all = 1;
    *n = 0;
    for (const char *p = text + (*text == '['); *p && *p != ']'; (*n)++) {
        char *end;
        *last = strtol(p, &end, 10);
        if (end == p || *last < 1 || *last > 4096) return -1;
        *all *= *last;
        p = *end == 'x' ? end + 1 : end;
    }
    return *n > 0 ? 0 : -1;
}

static void try_shape(const struct nb_property_call *call, const char *shape, struct nb_findings *out) {
    const struct nb_random random = nb_random_stream(1, 0);
    const int64_t rows = (int64_t)nb_param_number(call, "rows");
    int64_t all, last;
    char whole[96];
    int n_dims;
    if (dimensions(shape, &all, &last, &n_dims) != 0) {
        nb_findings_add_missing(out, "apart", "shape '%.40s' is not of the form [2x3]", shape);
        return;
    }
    snprintf(whole, sizeof whole, "%lldx%.60s", (long long)rows, shape);
    double *x = nb_alloc(3 * (unsigned long long)(rows * all), sizeof *x), *y = x + rows * all, *z = y + rows * all;
    for (int64_t i = 0; i < rows * all; i++) x[i] = nb_random_normal(random, (uint64_t)i);
    const struct nb_norm module = {.kernel = nb_param_text(call, "kernel"), .eps = 1e-5, .shape = whole};
    const struct nb_norm by_hand = {.kernel = nb_param_text(call, "kernel"), .eps = 1e-5};
    const struct nb_matrix_view v = {.rows = rows, .cols = all, .x = x};
    const struct nb_matrix_view w = {.rows = rows * all / last, .cols = last, .x = x};
    if (nb_norm_found(&module, &v, y, "apart", out) == 0 && nb_norm_found(&by_hand, &w, z, "apart", out) == 0) {
        struct nb_finding *f = nb_findings_add_exact(out, "apart", "", nb_largest_difference(y, z, rows * all));
        nb_finding_tag(f, "shape", shape);
        nb_finding_tag_number(f, "dimensions", n_dims);
    }
    free(x);
}

static void normalized_shape_run(const struct nb_property_call *call, struct nb_findings *out) {
    for (int i = 0; i < nb_param_count(call, "shape"); i++) try_shape(call, nb_param_text_at(call, "shape", i), out);
}

const struct nb_property nb_property_normalized_shape = {
    .name = "normalized_shape",
    .summary = "statistics over all dimensions or the last one",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = normalized_shape_run,
};
