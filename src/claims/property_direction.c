// SPDX-License-Identifier: Apache-2.0
/* The angle between a row and its norm, gamma 1 and beta 0. */
#include <math.h>
#include <stdlib.h>

#include "src/claims/property.h"
#include "src/core/log.h"

/* 1 - cos by |x/|x| - y/|y||^2 / 2, which keeps its digits near 0. */
static double turned(const double *x, const double *y, int64_t n) {
    const double rx = nb_rms_of(x, n), ry = nb_rms_of(y, n);
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += pow(x[i] / rx - y[i] / ry, 2);
    return squares / (double)n / 2;
}

static void direction_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols");
    double *x = nb_norm_rows(call, nb_param_text(call, "data"), rows, cols, "turned"), most = 0;
    if (!x) return;
    double *y = nb_alloc((unsigned long long)(rows * cols), sizeof *y);
    if (nb_norm_plain(call, nb_param_text(call, "kernel"), nb_param_number(call, "eps"), x, rows, cols, y, "turned") ==
        0) {
        for (int64_t r = 0; r < rows; r++) most = fmax(most, turned(x + r * cols, y + r * cols, cols));
        nb_property_add(call, "turned", "", most);
    }
    free(x);
    free(y);
}

const struct nb_property nb_property_direction = {
    .name = "direction",
    .summary = "how far a norm turns a row",
    .params = {{"kernel", "[\"rmsnorm_twopass\", \"layernorm_twopass\"]", "", false},
               {"data", "[\"normal\"]", "", false},
               {"rows", "64", "", true},
               {"cols", "384", "", true},
               {"eps", "1e-6", "", false}},
    .each = {{"kernel", "kernel"}, {"data", "data"}},
    .run = direction_run,
};
