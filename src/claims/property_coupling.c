// SPDX-License-Identifier: Apache-2.0
/* Does one sample's output depend on the others of its batch? One sample stays, its companions are redrawn again and again; what moves is
 * its output, and the gradient that reaches it (BatchNorm's from kernels/kernel.h, in double; a norm of rows has none to look at). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/log.h"
#include "src/core/random.h"

struct trial {
    int64_t batch, features;
};

/* Sample 0 from a stream of its own, the others from the draw's. */
static void fill(const struct trial *t, int draw, double *x) {
    const struct nb_random own = nb_random_stream(1, 0), others = nb_random_stream(2, (uint64_t)draw);
    for (int64_t i = 0; i < t->batch * t->features; i++)
        x[i] = nb_random_normal(i < t->features ? own : others, (uint64_t)i);
}

/* dx of sample 0 with dy = N(0,1), the same for it in every draw, by BatchNorm's formula with eps 1e-5. */
static void gradient_of_first(const struct trial *t, const double *x, int draw, double *dx) {
    const struct nb_random own = nb_random_stream(3, 0), others = nb_random_stream(4, (uint64_t)draw);
    for (int64_t c = 0; c < t->features; c++) {
        double mean = 0, var = 0, mean_g = 0, mean_gx = 0;
        for (int64_t b = 0; b < t->batch; b++) mean += x[b * t->features + c] / (double)t->batch;
        for (int64_t b = 0; b < t->batch; b++) var += pow(x[b * t->features + c] - mean, 2) / (double)t->batch;
        const double rstd = 1 / sqrt(var + 1e-5);
        for (int64_t b = 0; b < t->batch; b++) {
            const double g = nb_random_normal(b ? others : own, (uint64_t)(b * t->features + c));
            mean_g += g / (double)t->batch;
            mean_gx += g * (x[b * t->features + c] - mean) * rstd / (double)t->batch;
        }
        const double g0 = nb_random_normal(own, (uint64_t)c);
        dx[c] = rstd * (g0 - mean_g - (x[c] - mean) * rstd * mean_gx);
    }
}

struct spread { /* over draws, by feature */
    double *sum, *squares;
    int64_t n_features;
    int n;
};

static void spread_add(struct spread *s, const double *v) {
    for (int64_t i = 0; i < s->n_features; i++) {
        s->sum[i] += v[i];
        s->squares[i] += v[i] * v[i];
    }
    s->n++;
}

/* Root mean square deviation from the mean over draws, over the root mean square. */
static double spread_of(const struct spread *s) {
    double deviation = 0, whole = 0;
    for (int64_t i = 0; i < s->n_features; i++) {
        const double mean = s->sum[i] / s->n, square = s->squares[i] / s->n;
        deviation += fmax(0, square - mean * mean);
        whole += square;
    }
    return sqrt(deviation / whole);
}

static void coupling_run(const struct nb_property_call *call) {
    const struct trial t = {nb_param_whole(call, "batch"), nb_param_whole(call, "features")};
    const char *kernel = nb_param_text(call, "kernel");
    const int64_t n = t.batch * t.features;
    double *x = nb_alloc(2 * (unsigned long long)n, sizeof *x), *y = x + n;
    double *sums = nb_alloc(5 * (unsigned long long)t.features, sizeof *sums), *dx = sums + 4 * t.features;
    struct spread output = {sums, sums + t.features, t.features, 0},
                  gradient = {sums + 2 * t.features, sums + 3 * t.features, t.features, 0};
    const bool couples = strncmp(kernel, "batchnorm", 9) == 0;
    int result = 0;
    for (int draw = 0; draw < nb_param_whole(call, "draws") && result == 0; draw++) {
        fill(&t, draw, x);
        result = nb_norm_plain(call, kernel, 1e-5, x, t.batch, t.features, y, "moved");
        if (result == 0) spread_add(&output, y);
        if (couples) gradient_of_first(&t, x, draw, dx);
        if (couples) spread_add(&gradient, dx);
    }
    if (result == 0) nb_property_add(call, "moved", "share", spread_of(&output));
    if (result == 0 && couples) nb_property_add(call, "gradient_moved", "share", spread_of(&gradient));
    free(x);
    free(sums);
}

const struct nb_property nb_property_coupling = {
    .name = "coupling",
    .summary = "what companions in a batch do to one sample",
    .params = {{"kernel", "[\"batchnorm_twopass\", \"layernorm_twopass\"]", "norms", false},
               {"batch", "[2, 8, 64]", "samples in a batch", true},
               {"features", "64", "of a sample", true},
               {"draws", "32", "of companions", true}},
    .each = {{"kernel", "norm"}, {"batch", "batch"}},
    .run = coupling_run,
};
