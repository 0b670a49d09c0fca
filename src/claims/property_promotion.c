// SPDX-License-Identifier: Apache-2.0
/* x rounded to 16 bits after the scaling, then times a weight of another dtype: an eager framework gives the product the wider of both
 * types, since the narrower could not hold it. Measured: the share of products that the dtype of x cannot hold. */
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/dtype.h"
#include "src/core/random.h"

static void promotion_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols"), n = rows * cols;
    const int parsed = nb_dtype_parse(nb_param_text(call, "dtype"));
    const enum nb_dtype dtype = parsed < 0 ? NB_BF16 : (enum nb_dtype)parsed;
    const enum nb_dtype other = strcmp(nb_param_text(call, "weight"), "f32") == 0 ? NB_F32 : dtype;
    const struct nb_random weights = nb_random_stream(1, 1);
    double *x = nb_norm_normal(n, 2 * n), *y = x + n, beyond = 0;
    for (int64_t i = 0; i < n; i++) x[i] = nb_round_to(x[i], dtype);
    const struct nb_norm norm = {.kernel = "rmsnorm_twopass", .dtype = dtype, .eps = 1e-6};
    const struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x};
    if (nb_norm_found(call, &norm, &v, y, "result_bits") == 0) {
        /* The type of the product: torch.promote_types of both. */
        const enum nb_dtype result = nb_formats[other].bytes > nb_formats[dtype].bytes ? other : dtype;
        for (int64_t i = 0; i < n; i++) {
            const double w = nb_round_to(1 + 0.3 * nb_random_normal(weights, (uint64_t)(i % cols)), other);
            const double product = nb_round_to(y[i] * w, result);
            beyond += nb_round_to(product, dtype) != product;
        }
        nb_property_add(call, "result_bits", "", 8 * (double)nb_formats[result].bytes);
        nb_property_add(call, "beyond_dtype", "", beyond / (double)n);
    }
    free(x);
}

const struct nb_property nb_property_promotion = {
    .name = "promotion",
    .summary = "16-bit rows times weights of another dtype",
    .params = {{"dtype", "[\"bf16\", \"f16\"]", "of x", false},
               {"weight", "[\"x\", \"f32\"]", "dtype of the weight: x's, or f32", false},
               {"rows", "16", "", true},
               {"cols", "512", "", true}},
    .each = {{"dtype", "dtype"}, {"weight", "weight"}},
    .run = promotion_run,
};
