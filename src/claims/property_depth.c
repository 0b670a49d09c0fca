// SPDX-License-Identifier: Apache-2.0
/* The difference between training and inference through many layers, h <- relu(norm(W h)): each BatchNorm has running averages from
 * batches that went through the network before; then one batch goes through in both modes. Norms of rows have but one mode. */
#include <math.h>
#include <stdlib.h>

#include "src/claims/property.h"
#include "src/core/log.h"
#include "src/core/random.h"

struct net {
    int64_t batch, width;
    int depth;
    float *mean, *var; /* of each layer */
    double *h, *a;     /* batch x width */
};

static void multiply(const struct net *net, int layer) {
    const struct nb_random random = nb_random_stream(5, (uint64_t)layer);
    const double size = sqrt(2 / (double)net->width);
    double *w = nb_alloc((unsigned long long)(net->width * net->width), sizeof *w);
    for (int64_t i = 0; i < net->width * net->width; i++) w[i] = size * nb_random_normal(random, (uint64_t)i);
    for (int64_t b = 0; b < net->batch; b++)
        for (int64_t j = 0; j < net->width; j++) {
            double sum = 0;
            for (int64_t k = 0; k < net->width; k++) sum += w[j * net->width + k] * net->h[b * net->width + k];
            net->a[b * net->width + j] = sum;
        }
    free(w);
}

/* One batch through all layers; out: what the last norm returned. */
static int pass(const struct nb_property_call *call, const struct net *net, uint64_t draw, enum nb_mode mode,
                double *y) {
    const struct nb_random random = nb_random_stream(6, draw);
    const int64_t n = net->batch * net->width;
    for (int64_t i = 0; i < n; i++) net->h[i] = nb_random_normal(random, (uint64_t)i);
    for (int layer = 0; layer < net->depth; layer++) {
        const struct nb_norm norm = {.kernel = nb_param_text(call, "kernel"), .eps = 1e-5, .mode = mode};
        const struct nb_matrix_view v = {.rows = net->batch,
                                         .cols = net->width,
                                         .x = net->a,
                                         .running_mean = net->mean + layer * net->width,
                                         .running_var = net->var + layer * net->width};
        multiply(net, layer);
        if (nb_norm_found(call, &norm, &v, y, "apart") != 0) return -1;
        for (int64_t i = 0; i < n; i++) net->h[i] = y[i] > 0 ? y[i] : 0;
    }
    return 0;
}

static int modes_apart(const struct nb_property_call *call, const struct net *net, double *apart) {
    const int64_t n = net->batch * net->width, params_n = net->depth * net->width;
    double *y = nb_alloc(2 * (unsigned long long)n, sizeof *y), *z = y + n;
    int result = 0;
    for (int64_t i = 0; i < params_n; i++) net->var[i] = 1;
    for (int64_t b = 0; b < nb_param_whole(call, "batches") && result == 0; b++)
        result = pass(call, net, (uint64_t)b + 1, NB_TRAINING, y);
    if (result == 0) result = pass(call, net, 0, NB_INFERENCE, z);
    if (result == 0) result = pass(call, net, 0, NB_TRAINING, y);
    for (int64_t i = 0; i < n; i++) z[i] -= y[i];
    *apart = nb_rms_of(z, n) / nb_rms_of(y, n);
    free(y);
    return result;
}

static void depth_run(const struct nb_property_call *call) {
    struct net net = {.batch = nb_param_whole(call, "batch"),
                      .width = nb_param_whole(call, "width"),
                      .depth = (int)nb_param_number(call, "depth")};
    const unsigned long long stats = (unsigned long long)(net.depth * net.width),
                             n = (unsigned long long)(net.batch * net.width);
    double apart;
    net.mean = nb_alloc(2 * stats, sizeof *net.mean);
    net.var = net.mean + stats;
    net.h = nb_alloc(2 * n, sizeof *net.h);
    net.a = net.h + n;
    if (modes_apart(call, &net, &apart) == 0) nb_property_add(call, "apart", "share", apart);
    free(net.mean);
    free(net.h);
}

const struct nb_property nb_property_depth = {
    .name = "depth",
    .summary = "training against inference through many layers",
    .params = {{"kernel", "[\"batchnorm_twopass\", \"layernorm_twopass\"]", "", false},
               {"depth", "[1, 12, 24]", "layers", true},
               {"batch", "32", "", true},
               {"width", "48", "", true},
               {"batches", "30", "of training before", true}},
    .each = {{"kernel", "norm"}, {"depth", "depth"}},
    .run = depth_run,
};
