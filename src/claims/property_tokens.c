// SPDX-License-Identifier: Apache-2.0
/* Do tokens share statistics? All rows but one are drawn anew; counted are the bits of the one that stays. */
#include <stdlib.h>

#include "src/claims/property.h"
#include "src/core/log.h"
#include "src/core/random.h"

static void fill(double *x, int64_t rows, int64_t cols, int64_t kept, uint64_t draw) {
    for (int64_t r = 0; r < rows; r++) {
        const struct nb_random random = nb_random_stream(r == kept ? 1 : 2 + draw, (uint64_t)r);
        for (int64_t c = 0; c < cols; c++) x[r * cols + c] = nb_random_normal(random, (uint64_t)c);
    }
}

/* Each row is the one that stays in turn. */
static void tokens_run(const struct nb_property_call *call) {
    const char *kernel = nb_param_text(call, "kernel");
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols");
    double *x = nb_alloc(3 * (unsigned long long)(rows * cols), sizeof *x), *y = x + rows * cols, *z = y + rows * cols;
    double moved = 0;
    int result = 0;
    for (int64_t kept = 0; kept < rows && result == 0; kept++) {
        fill(x, rows, cols, kept, 0);
        result = nb_norm_plain(call, kernel, 1e-5, x, rows, cols, y, "rows_moved");
        fill(x, rows, cols, kept, 1);
        if (result == 0) result = nb_norm_plain(call, kernel, 1e-5, x, rows, cols, z, "rows_moved");
        if (result == 0) moved += nb_largest_difference(y + kept * cols, z + kept * cols, cols) > 0;
    }
    if (result == 0) nb_property_add(call, "rows_moved", "share", moved / (double)rows);
    free(x);
}

const struct nb_property nb_property_tokens = {
    .name = "tokens",
    .summary = "does a row's result depend on other rows?",
    .params = {{"kernel", "[\"rmsnorm_twopass\", \"layernorm_twopass\"]", "", false},
               {"rows", "32", "", true},
               {"cols", "96", "", true}},
    .each = {{"kernel", "norm"}},
    .run = tokens_run,
};
