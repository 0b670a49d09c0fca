// SPDX-License-Identifier: Apache-2.0
/* BatchNorm in training and in inference on the same batch, after so many batches of training: root mean square of the difference over
 * that of the result. The running averages start from 0 and 1 and see other batches of the same distribution. */
#include <stdlib.h>

#include "src/claims/property.h"
#include "src/core/log.h"
#include "src/core/random.h"

static void fill(double *x, int64_t batch, int64_t features, uint64_t draw) {
    const struct nb_random random = nb_random_stream(2, draw), place = nb_random_stream(1, 0);
    for (int64_t i = 0; i < batch * features; i++) {
        const uint64_t c = (uint64_t)(i % features);
        x[i] = nb_random_normal(place, 2 * c) +
               (0.5 + nb_random_open(place, 2 * c + 1)) * nb_random_normal(random, (uint64_t)i);
    }
}

/* y: the batch in training, z: in inference. */
static int both_modes(const struct nb_property_call *call, int64_t batch, int64_t features, double *x, double *y,
                      double *z) {
    const int64_t batches = nb_param_whole(call, "batches");
    float *mean = nb_alloc(2 * (unsigned long long)features, sizeof *mean), *var = mean + features;
    struct nb_norm n = {
        .kernel = nb_param_text(call, "kernel"), .eps = 1e-5, .momentum = nb_param_number(call, "momentum")};
    const struct nb_matrix_view v = {.rows = batch, .cols = features, .x = x, .running_mean = mean, .running_var = var};
    int result = 0;
    for (int64_t i = 0; i < features; i++) var[i] = 1;
    for (int64_t b = 0; b < batches && result == 0; b++) {
        fill(x, batch, features, (uint64_t)b + 1);
        result = nb_norm_found(call, &n, &v, y, "apart");
    }
    fill(x, batch, features, 0);
    n.mode = NB_INFERENCE;
    if (result == 0) result = nb_norm_found(call, &n, &v, z, "apart");
    n.mode = NB_TRAINING;
    if (result == 0) result = nb_norm_found(call, &n, &v, y, "apart");
    free(mean);
    return result;
}

static void running_run(const struct nb_property_call *call) {
    const int64_t batch = nb_param_whole(call, "batch"), features = nb_param_whole(call, "features");
    const int64_t n = batch * features;
    double *x = nb_alloc(3 * (unsigned long long)n, sizeof *x), *y = x + n, *z = y + n;
    if (both_modes(call, batch, features, x, y, z) == 0) {
        for (int64_t i = 0; i < n; i++) z[i] -= y[i];
        nb_property_add(call, "apart", "share", nb_rms_of(z, n) / nb_rms_of(y, n));
    }
    free(x);
}

const struct nb_property nb_property_running = {
    .name = "running",
    .summary = "training against inference on one batch",
    .params = {{"kernel", "[\"batchnorm_twopass\", \"layernorm_twopass\"]", "", false},
               {"batch", "[8, 32, 256]", "samples", true},
               {"batches", "[1, 10, 100]", "of training before", true},
               {"features", "32", "of mean and standard deviation of their own", true},
               {"momentum", "0.1", "weight of the new value", false}},
    .each = {{"kernel", "norm"}, {"batch", "batch"}, {"batches", "batches"}},
    .run = running_run,
};
