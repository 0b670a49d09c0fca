// SPDX-License-Identifier: Apache-2.0
/* Do tokens share statistics? All rows but one are drawn anew; counted are the bits of the one that stays. */
#include <stdlib.h>

#include "src/claims/norm_call.h"
#include "src/core/log.h"
#include "src/core/random.h"

static const struct nb_property_param params[] = {
    {"kernel", "[\"rmsnorm_twopass\", \"layernorm_twopass\"]", "", false},
    {"rows", "32", "", true},
    {"cols", "96", "", true},
};

static void fill(double *x, int64_t rows, int64_t cols, int64_t kept, uint64_t draw) {
    for (int64_t r = 0; r < rows; r++) {
        const struct nb_random random = nb_random_stream(r == kept ? 1 : 2 + draw, (uint64_t)r);
        for (int64_t c = 0; c < cols; c++) x[r * cols + c] = nb_random_normal(random, (uint64_t)c);
    }
}

/* Each row is the one that stays in turn. */
static void try_kernel(const char *kernel, int64_t rows, int64_t cols, struct nb_findings *out) {
    double *x = nb_alloc(3 * (unsigned long long)(rows * cols), sizeof *x), *y = x + rows * cols, *z = y + rows * cols;
    const struct nb_norm n = {.kernel = kernel, .eps = 1e-5};
    const struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x};
    double moved = 0;
    int result = 0;
    for (int64_t kept = 0; kept < rows && result == 0; kept++) {
        fill(x, rows, cols, kept, 0);
        result = nb_norm_found(&n, &v, y, "rows_moved", out);
        fill(x, rows, cols, kept, 1);
        if (result == 0) result = nb_norm_found(&n, &v, z, "rows_moved", out);
        if (result == 0) moved += nb_largest_difference(y + kept * cols, z + kept * cols, cols) > 0;
    }
    if (result == 0)
        nb_finding_tag(nb_findings_add_exact(out, "rows_moved", "share", moved / (double)rows), "norm", kernel);
    free(x);
}

static void tokens_run(const struct nb_property_call *call, struct nb_findings *out) {
    for (int i = 0; i < nb_param_count(call, "kernel"); i++)
        try_kernel(nb_param_text_at(call, "kernel", i), (int64_t)nb_param_number(call, "rows"),
                   (int64_t)nb_param_number(call, "cols"), out);
}

const struct nb_property nb_property_tokens = {
    .name = "tokens",
    .summary = "does a row's result depend on other rows?",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = tokens_run,
};
