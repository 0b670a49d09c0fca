// SPDX-License-Identifier: Apache-2.0
/* x rounded to 16 bits after the scaling, then times a weight of another dtype: an eager framework gives the product the wider of both
 * types, since the narrower could not hold it. Measured: the share of products that the dtype of x cannot hold. */
#include <stdlib.h>
#include <string.h>

#include "src/claims/norm_call.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"

static const struct nb_property_param params[] = {
    {"dtype", "[\"bf16\", \"f16\"]", "of x", false},
    {"weight", "[\"x\", \"f32\"]", "dtype of the weight: x's, or f32", false},
    {"rows", "16", "", true},
    {"cols", "512", "", true},
};

static void add(struct nb_findings *out, const char *name, double value, enum nb_dtype dtype, const char *weight) {
    struct nb_finding *f = nb_findings_add_exact(out, name, "", value);
    nb_finding_tag(f, "dtype", nb_formats[dtype].name);
    nb_finding_tag(f, "weight", weight);
}

static void try_one(const struct nb_property_call *call, enum nb_dtype dtype, const char *weight,
                    struct nb_findings *out) {
    const int64_t rows = (int64_t)nb_param_number(call, "rows"), cols = (int64_t)nb_param_number(call, "cols");
    const struct nb_random random = nb_random_stream(1, 0), weights = nb_random_stream(1, 1);
    const enum nb_dtype other = strcmp(weight, "f32") == 0 ? NB_F32 : dtype;
    double *x = nb_alloc(2 * (unsigned long long)(rows * cols), sizeof *x), *y = x + rows * cols, beyond = 0;
    for (int64_t i = 0; i < rows * cols; i++) x[i] = nb_round_to(nb_random_normal(random, (uint64_t)i), dtype);
    const struct nb_norm n = {.kernel = "rmsnorm_twopass", .dtype = dtype, .eps = 1e-6};
    const struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x};
    if (nb_norm_found(&n, &v, y, "result_bits", out) == 0) {
        /* The type of the product: torch.promote_types of both. */
        const enum nb_dtype result = nb_formats[other].bytes > nb_formats[dtype].bytes ? other : dtype;
        for (int64_t i = 0; i < rows * cols; i++) {
            const double w = nb_round_to(1 + 0.3 * nb_random_normal(weights, (uint64_t)(i % cols)), other);
            const double product = nb_round_to(y[i] * w, result);
            beyond += nb_round_to(product, dtype) != product;
        }
        add(out, "result_bits", 8 * (double)nb_formats[result].bytes, dtype, weight);
        add(out, "beyond_dtype", beyond / (double)(rows * cols), dtype, weight);
    }
    free(x);
}

static void promotion_run(const struct nb_property_call *call, struct nb_findings *out) {
    for (int d = 0; d < nb_param_count(call, "dtype"); d++)
        for (int w = 0; w < nb_param_count(call, "weight"); w++) {
            const int dtype = nb_dtype_parse(nb_param_text_at(call, "dtype", d));
            try_one(call, dtype < 0 ? NB_BF16 : (enum nb_dtype)dtype, nb_param_text_at(call, "weight", w), out);
        }
}

const struct nb_property nb_property_promotion = {
    .name = "promotion",
    .summary = "16-bit rows times weights of another dtype",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = promotion_run,
};
