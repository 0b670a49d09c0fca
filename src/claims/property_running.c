// SPDX-License-Identifier: Apache-2.0
/* BatchNorm in training and in inference on the same batch, after so many batches of training: root mean square of the difference over
 * that of the result. The running averages start from 0 and 1 and see other batches of the same distribution. */
#include <stdlib.h>
#include <string.h>

#include "src/claims/norm_call.h"
#include "src/core/log.h"
#include "src/core/random.h"

static const struct nb_property_param params[] = {
    {"kernel", "[\"batchnorm_twopass\", \"layernorm_twopass\"]", "", false},
    {"batch", "[8, 32, 256]", "samples", true},
    {"batches", "[1, 10, 100]", "of training before", true},
    {"features", "32", "of mean and standard deviation of their own", true},
    {"momentum", "0.1", "weight of the new value", false},
};

struct trial {
    const char *kernel;
    int64_t batch, features;
    int batches;
    double momentum;
};

static void fill(const struct trial *t, uint64_t draw, double *x) {
    const struct nb_random random = nb_random_stream(2, draw), place = nb_random_stream(1, 0);
    for (int64_t i = 0; i < t->batch * t->features; i++) {
        const uint64_t c = (uint64_t)(i % t->features);
        x[i] = nb_random_normal(place, 2 * c) +
               (0.5 + nb_random_open(place, 2 * c + 1)) * nb_random_normal(random, (uint64_t)i);
    }
}

static int difference(const struct trial *t, double *x, double *y, double *z, struct nb_findings *out) {
    float *mean = nb_alloc(2 * (unsigned long long)t->features, sizeof *mean), *var = mean + t->features;
    struct nb_norm n = {.kernel = t->kernel, .eps = 1e-5, .momentum = t->momentum};
    struct nb_matrix_view v = {.rows = t->batch, .cols = t->features, .x = x, .running_mean = mean, .running_var = var};
    int result = 0;
    for (int64_t i = 0; i < t->features; i++) var[i] = 1;
    for (int b = 0; b < t->batches && result == 0; b++) {
        fill(t, (uint64_t)b + 1, x);
        result = nb_norm_found(&n, &v, y, "apart", out);
    }
    fill(t, 0, x);
    n.mode = NB_INFERENCE;
    if (result == 0) result = nb_norm_found(&n, &v, z, "apart", out);
    n.mode = NB_TRAINING;
    if (result == 0) result = nb_norm_found(&n, &v, y, "apart", out);
    free(mean);
    return result;
}

static void try_one(const struct trial *t, struct nb_findings *out) {
    const int64_t n = t->batch * t->features;
    double *x = nb_alloc(3 * (unsigned long long)n, sizeof *x), *y = x + n, *z = y + n;
    if (difference(t, x, y, z, out) == 0) {
        for (int64_t i = 0; i < n; i++) z[i] -= y[i];
        struct nb_finding *f = nb_findings_add_exact(out, "apart", "share", nb_rms_of(z, n) / nb_rms_of(y, n));
        nb_finding_tag(f, "norm", t->kernel);
        nb_finding_tag_number(f, "batch", (double)t->batch);
        nb_finding_tag_number(f, "batches", t->batches);
    }
    free(x);
}

static void running_run(const struct nb_property_call *call, struct nb_findings *out) {
    struct trial t = {.features = (int64_t)nb_param_number(call, "features"),
                      .momentum = nb_param_number(call, "momentum")};
    for (int k = 0; k < nb_param_count(call, "kernel"); k++)
        for (int b = 0; b < nb_param_count(call, "batch"); b++)
            for (int s = 0; s < nb_param_count(call, "batches"); s++) {
                t.kernel = nb_param_text_at(call, "kernel", k);
                t.batch = (int64_t)nb_param_number_at(call, "batch", b);
                t.batches = (int)nb_param_number_at(call, "batches", s);
                try_one(&t, out);
            }
}

const struct nb_property nb_property_running = {
    .name = "running",
    .summary = "training against inference on one batch",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .run = running_run,
};
