// SPDX-License-Identifier: Apache-2.0
/* normalized_shape of one and of several dimensions: a kernel, which takes its statistics over all of them as nn.RMSNorm does,
 * against a hand-written class that takes the mean over the last dimension alone. */
#include <stdio.h>
#include <stdlib.h>

#include "src/claims/property.h"

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

static void normalized_shape_run(const struct nb_property_call *call) {
    const char *shape = nb_param_text(call, "shape"), *kernel = nb_param_text(call, "kernel");
    const int64_t rows = nb_param_whole(call, "rows");
    int64_t all, last;
    char whole[96];
    int n_dims;
    if (dimensions(shape, &all, &last, &n_dims) != 0) {
        nb_findings_add_missing(call->out, "apart", "shape '%.40s' is not of the form [2x3]", shape);
        return;
    }
    snprintf(whole, sizeof whole, "%lldx%.60s", (long long)rows, shape);
    double *x = nb_norm_normal(rows * all, 3 * rows * all), *y = x + rows * all, *z = y + rows * all;
    const struct nb_norm module = {.kernel = kernel, .eps = 1e-5, .shape = whole};
    const struct nb_matrix_view v = {.rows = rows, .cols = all, .x = x};
    if (nb_norm_found(call, &module, &v, y, "apart") == 0 &&
        nb_norm_plain(call, kernel, 1e-5, x, rows * all / last, last, z, "apart") == 0)
        nb_finding_tag_number(nb_property_add(call, "apart", "", nb_largest_difference(y, z, rows * all)), "dimensions",
                              n_dims);
    free(x);
}

const struct nb_property nb_property_normalized_shape = {
    .name = "normalized_shape",
    .summary = "statistics over all dimensions or the last one",
    .params = {{"kernel", "\"rmsnorm_twopass\"", "", false},
               {"rows", "4", "", true},
               {"shape", "[\"[6]\", \"[2x3]\"]", "normalized_shape, as shapes have it", false}},
    .each = {{"shape", "shape"}},
    .run = normalized_shape_run,
};
