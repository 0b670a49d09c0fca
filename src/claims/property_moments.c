// SPDX-License-Identifier: Apache-2.0
/* Mean, variance and standard deviation of what a norm returns, with gamma 1 and beta 0. */
#include <math.h>
#include <stdlib.h>

#include "src/claims/property.h"
#include "src/core/log.h"

static void moments_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols");
    double *x = nb_norm_rows(call, nb_param_text(call, "data"), rows, cols, "std"), mean = 0, off = 0;
    if (!x) return;
    double *y = nb_alloc((unsigned long long)(rows * cols), sizeof *y);
    if (nb_norm_plain(call, nb_param_text(call, "kernel"), nb_param_number(call, "eps"), x, rows, cols, y, "std") ==
        0) {
        for (int64_t r = 0; r < rows; r++) {
            mean = fmax(mean, fabs(nb_mean_of(y + r * cols, cols)));
            off = fmax(off, fabs(nb_variance_of(y + r * cols, cols) - 1));
        }
        nb_property_add(call, "mean_off", "", mean);    /* largest |mean| of a row */
        nb_property_add(call, "variance_off", "", off); /* largest |variance - 1| of a row */
        nb_property_add(call, "std", "", sqrt(nb_variance_of(y, rows * cols)));
    }
    free(x);
    free(y);
}

const struct nb_property nb_property_moments = {
    .name = "moments",
    .summary = "mean and variance of what a norm returns",
    .params = {{"kernel", "[\"layernorm_twopass\"]", "", false},
               {"data", "[\"normal\"]", "", false},
               {"eps", "[1e-5]", "", false},
               {"rows", "20", "", true},
               {"cols", "512", "", true}},
    .each = {{"kernel", "kernel"}, {"data", "data"}, {"eps", "eps"}},
    .run = moments_run,
};
