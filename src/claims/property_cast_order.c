// SPDX-License-Identifier: Apache-2.0
/* Rounded to the dtype before the weight (Llama) or after it (Gemma): which outputs differ, and by how much. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/dtype.h"
#include "src/core/random.h"

/* y of both orders. */
static int compute(const struct nb_property_call *call, enum nb_dtype dtype, const struct nb_matrix_view *v,
                   double *before, double *after) {
    struct nb_norm n = {.kernel = nb_param_text(call, "kernel"), .dtype = dtype, .eps = nb_param_number(call, "eps")};
    n.formula.root = NB_ROOT_MUL_RECIP;
    n.formula.cast = NB_CAST_BEFORE;
    if (nb_norm_found(call, &n, v, before, "differ") != 0) return -1;
    n.formula.cast = NB_CAST_AFTER;
    return nb_norm_found(call, &n, v, after, "differ");
}

static void compare(const struct nb_property_call *call, enum nb_dtype dtype, const double *before, const double *after,
                    int64_t n) {
    double n_differ = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        if (before[i] == after[i]) continue;
        n_differ++;
        most = fmax(most, fabs(before[i] - after[i]) / nb_ulp(fmin(fabs(before[i]), fabs(after[i])), dtype));
    }
    nb_property_add(call, "differ", "share", n_differ / (double)n);
    nb_property_add(call, "largest_step", "ulp", most);
}

static void cast_order_run(const struct nb_property_call *call) {
    const int parsed = nb_dtype_parse(nb_param_text(call, "dtype"));
    const enum nb_dtype dtype = parsed < 0 ? NB_BF16 : (enum nb_dtype)parsed;
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols"), n = rows * cols;
    const bool ones = strcmp(nb_param_text(call, "weight"), "ones") == 0;
    const struct nb_random weights = nb_random_stream(1, 1);
    double *x = nb_norm_normal(n, 3 * n + cols), *before = x + n, *after = before + n, *gamma = after + n;
    for (int64_t i = 0; i < n; i++) x[i] = nb_round_to(x[i], dtype);
    for (int64_t i = 0; i < cols; i++)
        gamma[i] = ones ? 1 : nb_round_to(1 + 0.3 * nb_random_normal(weights, (uint64_t)i), dtype);
    const struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x, .gamma = gamma};
    if (compute(call, dtype, &v, before, after) == 0) compare(call, dtype, before, after, n);
    free(x);
}

const struct nb_property nb_property_cast_order = {
    .name = "cast_order",
    .summary = "rounding before or after the weight",
    .params = {{"kernel", "[\"rmsnorm_twopass\"]", "kernels", false},
               {"dtype", "[\"bf16\"]", "f16, bf16", false},
               {"weight", "[\"drawn\"]", "drawn: 1 + 0.3 N(0,1), rounded to the dtype; ones", false},
               {"rows", "64", "", true},
               {"cols", "1024", "", true},
               {"eps", "1e-6", "", false}},
    .each = {{"kernel", "kernel"}, {"dtype", "dtype"}, {"weight", "weight"}},
    .run = cast_order_run,
};
