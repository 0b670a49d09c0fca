// SPDX-License-Identifier: Apache-2.0
/* x -> relu(W x + b), layer after layer, weights and biases uniform within 1 / sqrt(n) as nn.Linear begins with, and a norm behind each or
 * none: the standard deviation of what comes out. */
#include <math.h>
#include <stdlib.h>

#include "src/claims/property.h"
#include "src/core/log.h"
#include "src/core/random.h"

/* out = relu(in W^T + b); the stream is the layer's own. */
static void linear_relu(const double *in, double *out, int64_t rows, int64_t n, struct nb_random random) {
    const double bound = 1 / sqrt((double)n);
    double *w = nb_alloc((unsigned long long)(n * n), sizeof *w);
    for (int64_t i = 0; i < n * n; i++) w[i] = bound * (2 * nb_random_open(random, (uint64_t)(n + i)) - 1);
    for (int64_t r = 0; r < rows; r++) {
        double *y = out + r * n;
        for (int64_t j = 0; j < n; j++) y[j] = bound * (2 * nb_random_open(random, (uint64_t)j) - 1);
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < n; j++) y[j] += in[r * n + k] * w[k * n + j];
        for (int64_t j = 0; j < n; j++) y[j] = fmax(y[j], 0);
    }
    free(w);
}

static void linear_stack_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols"), n = rows * cols;
    const int64_t layers = nb_param_whole(call, "layers");
    double *x = nb_norm_normal(n, 2 * n), *y = x + n;
    for (int64_t layer = 1; layer <= layers; layer++) {
        linear_relu(x, y, rows, cols, nb_random_stream((uint64_t)nb_param_number(call, "seed"), (uint64_t)layer));
        if (nb_norm_plain(call, nb_param_text(call, "norm"), 1e-5, y, rows, cols, x, "std") != 0) break;
        struct nb_finding *f = nb_property_add(call, "std", "", sqrt(nb_variance_of(x, n)));
        nb_finding_tag_number(f, "layer", (double)layer);
    }
    free(x);
}

const struct nb_property nb_property_linear_stack = {
    .name = "linear_stack",
    .summary = "activations of 10 x (Linear + ReLU), with and without a norm",
    .params = {{"norm", "[\"none\", \"rmsnorm_twopass\"]", "", false},
               {"seed", "[1, 2, 3]", "of the weights", false},
               {"layers", "10", "", true},
               {"rows", "100", "", true},
               {"cols", "512", "", true}},
    .each = {{"norm", "norm"}, {"seed", "seed"}},
    .run = linear_stack_run,
};
