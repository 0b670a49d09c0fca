// SPDX-License-Identifier: Apache-2.0
/* Rows stored in 8 bits or in f16, as they are and behind a norm: what is lost, and the mean relative error of an element. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/norm_call.h"
#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/lab/emulate/quantize.h"

static const struct nb_property_param params[] = {
    {"norm", "[\"none\", \"rmsnorm_twopass\", \"layernorm_twopass\"]", "", false},
    {"data", "[\"normal\", \"massive\", \"lognormal(3)\"]", "", false},
    {"to", "[\"e4m3\", \"e5m2\", \"int8\", \"f16\"]", "", false},
    {"scaling", "\"tensor\"", "none, tensor, row; f16 has none", false},
    {"rows", "64", "of sizes from 0.01 to 100", true},
    {"cols", "384", "", true},
};

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

static void add(struct nb_findings *out, double error, const char *norm, const char *data, const char *to) {
    struct nb_finding *f = isnan(error) ? nb_findings_add_missing(out, "relative_error", "nothing but zeros")
                                        : nb_findings_add_exact(out, "relative_error", "share", error);
    nb_finding_tag(f, "norm", norm);
    nb_finding_tag(f, "data", data);
    nb_finding_tag(f, "to", to);
}

static void store(const struct nb_property_call *call, const double *y, int64_t rows, int64_t cols, const char *norm,
                  const char *data, struct nb_findings *out) {
    const int scaling = nb_name_find(nb_scaling_names, nb_param_text(call, "scaling"));
    for (int i = 0; i < nb_param_count(call, "to"); i++) {
        const char *to = nb_param_text_at(call, "to", i);
        const int quantum = nb_name_find(nb_quantum_names, to);
        struct nb_quantized q = {.mean_relative = NAN};
        if (strcmp(to, "f16") == 0)
            q.mean_relative = relative_error_f16(y, rows * cols);
        else if (quantum >= 0)
            nb_quantize(&q, y, rows, cols, (enum nb_quantum)quantum,
                        scaling < 0 ? NB_SCALING_TENSOR : (enum nb_scaling)scaling);
        add(out, q.mean_relative, norm, data, to);
    }
}

static void try_one(const struct nb_property_call *call, const char *norm, const char *data, struct nb_findings *out) {
    char reason[300];
    const int64_t rows = (int64_t)nb_param_number(call, "rows"), cols = (int64_t)nb_param_number(call, "cols");
    double *x = nb_norm_rows(data, rows, cols, 1, reason, sizeof reason);
    if (!x) {
        nb_findings_add_missing(out, "relative_error", "%s", reason);
        return;
    }
    for (int64_t i = 0; i < rows * cols; i++) x[i] *= pow(1e4, (double)(i / cols) / (double)rows - 0.5);
    double *y = nb_alloc((unsigned long long)(rows * cols), sizeof *y);
    const struct nb_norm n = {.kernel = norm, .eps = 1e-6};
    const struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x};
    if (strcmp(norm, "none") == 0)
        store(call, x, rows, cols, norm, data, out);
    else if (nb_norm_found(&n, &v, y, "relative_error", out) == 0)
        store(call, y, rows, cols, norm, data, out);
    free(x);
    free(y);
}

static void quantized_run(const struct nb_property_call *call, struct nb_findings *out) {
    for (int i = 0; i < nb_param_count(call, "norm"); i++)
        for (int j = 0; j < nb_param_count(call, "data"); j++)
            try_one(call, nb_param_text_at(call, "norm", i), nb_param_text_at(call, "data", j), out);
}

const struct nb_property nb_property_quantized = {
    .name = "quantized",
    .summary = "rows stored in few bits, with and without a norm",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = quantized_run,
};
