// SPDX-License-Identifier: Apache-2.0
/* Rows stored in 8 bits or in f16, as they are and behind a norm: what is lost, and the mean relative error of an element. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/lab/emulate/quantize.h"

/* f16 needs no scale: elements that become 0 count 1, those that overflow too. */
static double relative_error_f16(const double *v, int64_t n) {
    double sum = 0, count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (v[i] == 0 || !isfinite(v[i])) continue;
        const double stored = nb_round_to(v[i], NB_F16);
        sum += isfinite(stored) ? fabs((stored - v[i]) / v[i]) : 1;
        count++;
    }
    return count > 0 ? sum / count : (double)NAN;
}

/* NaN: nothing but zeros. */
static double relative_error(const struct nb_property_call *call, const double *y, int64_t rows, int64_t cols) {
    const char *to = nb_param_text(call, "to");
    const int quantum = nb_name_find(nb_quantum_names, to),
              scaling = nb_name_find(nb_scaling_names, nb_param_text(call, "scaling"));
    struct nb_quantized q = {.mean_relative = NAN};
    if (strcmp(to, "f16") == 0) return relative_error_f16(y, rows * cols);
    if (quantum >= 0)
        nb_quantize(&q, y, rows, cols, (enum nb_quantum)quantum,
                    scaling < 0 ? NB_SCALING_TENSOR : (enum nb_scaling)scaling);
    return q.mean_relative;
}

static void quantized_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols");
    double *x = nb_norm_rows(call, nb_param_text(call, "data"), rows, cols, "relative_error");
    if (!x) return;
    for (int64_t i = 0; i < rows * cols; i++) x[i] *= pow(1e4, (double)(i / cols) / (double)rows - 0.5);
    double *y = nb_alloc((unsigned long long)(rows * cols), sizeof *y);
    if (nb_norm_plain(call, nb_param_text(call, "norm"), 1e-6, x, rows, cols, y, "relative_error") == 0)
        nb_property_add_or(call, "relative_error", "share", relative_error(call, y, rows, cols), "nothing but zeros");
    free(x);
    free(y);
}

const struct nb_property nb_property_quantized = {
    .name = "quantized",
    .summary = "rows stored in few bits, with and without a norm",
    .params = {{"norm", "[\"none\", \"rmsnorm_twopass\", \"layernorm_twopass\"]", "", false},
               {"data", "[\"normal\", \"massive\", \"lognormal(3)\"]", "", false},
               {"to", "[\"e4m3\", \"e5m2\", \"int8\", \"f16\"]", "", false},
               {"scaling", "\"tensor\"", "none, tensor, row; f16 has none", false},
               {"rows", "64", "of sizes from 0.01 to 100", true},
               {"cols", "384", "", true}},
    .each = {{"norm", "norm"}, {"data", "data"}, {"to", "to"}},
    .run = quantized_run,
};
