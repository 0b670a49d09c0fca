// SPDX-License-Identifier: Apache-2.0
/* Rounded to the dtype before the weight (Llama) or after it (Gemma): which outputs differ, and by how much. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/norm_call.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"

static const struct nb_property_param params[] = {
    {"kernel", "[\"rmsnorm_twopass\"]", "kernels", false},
    {"dtype", "[\"bf16\"]", "f16, bf16", false},
    {"weight", "[\"drawn\"]", "drawn: 1 + 0.3 N(0,1), rounded to the dtype; ones", false},
    {"rows", "64", "", true},
    {"cols", "1024", "", true},
    {"eps", "1e-6", "", false},
};

struct trial {
    const char *kernel, *weight;
    enum nb_dtype dtype;
    int64_t rows, cols;
    double eps;
};

/* y of both orders, and exact: per element before any rounding. */
static int compute(const struct trial *t, const double *x, const double *gamma, double *before, double *after,
                   struct nb_findings *out) {
    const struct nb_matrix_view v = {.rows = t->rows, .cols = t->cols, .x = x, .gamma = gamma};
    struct nb_norm n = {.kernel = t->kernel, .dtype = t->dtype, .eps = t->eps};
    n.formula.root = NB_ROOT_MUL_RECIP;
    n.formula.cast = NB_CAST_BEFORE;
    if (nb_norm_found(&n, &v, before, "differ", out) != 0) return -1;
    n.formula.cast = NB_CAST_AFTER;
    return nb_norm_found(&n, &v, after, "differ", out);
}

static void add(struct nb_findings *out, const char *name, const char *unit, double value, const struct trial *t) {
    struct nb_finding *f = nb_findings_add_exact(out, name, unit, value);
    nb_finding_tag(f, "kernel", t->kernel);
    nb_finding_tag(f, "dtype", nb_formats[t->dtype].name);
    nb_finding_tag(f, "weight", t->weight);
}

static void compare(const struct trial *t, const double *before, const double *after, struct nb_findings *out) {
    const int64_t n = t->rows * t->cols;
    double n_differ = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        if (before[i] == after[i]) continue;
        n_differ++;
        most = fmax(most, fabs(before[i] - after[i]) / nb_ulp(fmin(fabs(before[i]), fabs(after[i])), t->dtype));
    }
    add(out, "differ", "share", n_differ / (double)n, t);
    add(out, "largest_step", "ulp", most, t);
}

static void try_one(const struct trial *t, struct nb_findings *out) {
    const int64_t n = t->rows * t->cols;
    const struct nb_random random = nb_random_stream(1, 0), weights = nb_random_stream(1, 1);
    double *x = nb_alloc((unsigned long long)n, sizeof *x), *gamma = nb_alloc((unsigned long long)t->cols, sizeof *x);
    double *before = nb_alloc((unsigned long long)n, sizeof *x), *after = nb_alloc((unsigned long long)n, sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = nb_round_to(nb_random_normal(random, (uint64_t)i), t->dtype);
    for (int64_t i = 0; i < t->cols; i++)
        gamma[i] = strcmp(t->weight, "ones") == 0
                       ? 1
                       : nb_round_to(1 + 0.3 * nb_random_normal(weights, (uint64_t)i), t->dtype);
    if (compute(t, x, gamma, before, after, out) == 0) compare(t, before, after, out);
    free(x);
    free(gamma);
    free(before);
    free(after);
}

static void cast_order_run(const struct nb_property_call *call, struct nb_findings *out) {
    struct trial t = {.rows = (int64_t)nb_param_number(call, "rows"),
                      .cols = (int64_t)nb_param_number(call, "cols"),
                      .eps = nb_param_number(call, "eps")};
    for (int k = 0; k < nb_param_count(call, "kernel"); k++)
        for (int d = 0; d < nb_param_count(call, "dtype"); d++)
            for (int w = 0; w < nb_param_count(call, "weight"); w++) {
                const int dtype = nb_dtype_parse(nb_param_text_at(call, "dtype", d));
                t.kernel = nb_param_text_at(call, "kernel", k);
                t.weight = nb_param_text_at(call, "weight", w);
                t.dtype = dtype < 0 ? NB_BF16 : (enum nb_dtype)dtype;
                try_one(&t, out);
            }
}

const struct nb_property nb_property_cast_order = {
    .name = "cast_order",
    .summary = "rounding before or after the weight",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = cast_order_run,
};
