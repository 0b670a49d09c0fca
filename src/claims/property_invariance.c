// SPDX-License-Identifier: Apache-2.0
/* Transformations that leave a norm as it is, and demonstrations of them on printed rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/log.h"
#include "src/core/random.h"

/* invariance. Table 1 of the RMSNorm paper (Zhang & Sennrich 2019): which transformations of weights and inputs leave norm(X W^T) as it is. X are
 * the cases, rows of inputs; W the weights, a row for each neuron. WeightNorm is v / |v| for each neuron's weights, with gain 1. */

struct layer {
    int64_t cases, inputs, neurons;
    double *x, *w; /* cases x inputs, neurons x inputs */
};

static const struct transformation {
    const char *name;
    bool of_data, of_first,
        shifts; /* of the cases, not the weights; of their first row alone; re-centres, not re-scales */
} transformations[] = {
    {"weight matrix re-scaled", false, false, false}, {"weight matrix re-centred", false, false, true},
    {"weight vector re-scaled", false, true, false},  {"dataset re-scaled", true, false, false},
    {"dataset re-centred", true, false, true},        {"single case re-scaled", true, true, false}};

static void scale(double *v, int64_t n, double by) {
    for (int64_t i = 0; i < n; i++) v[i] *= by;
}

/* The same vector added to every row. */
static void shift_rows(double *v, int64_t rows, int64_t cols) {
    const struct nb_random random = nb_random_stream(9, 0);
    for (int64_t i = 0; i < rows * cols; i++) v[i] += 2 * nb_random_normal(random, (uint64_t)(i % cols));
}

static void apply_change(struct layer *l, const struct transformation *by, double factor) {
    double *rows = by->of_data ? l->x : l->w;
    const int64_t n = by->of_first ? 1 : by->of_data ? l->cases : l->neurons;
    if (by->shifts)
        shift_rows(rows, n, l->inputs);
    else
        scale(rows, n * l->inputs, factor);
}

static void layer_init(struct layer *l, const struct nb_property_call *call) {
    const struct nb_random x = nb_random_stream(1, 0), w = nb_random_stream(1, 1);
    *l = (struct layer){.cases = nb_param_whole(call, "cases"),
                        .inputs = nb_param_whole(call, "inputs"),
                        .neurons = nb_param_whole(call, "neurons")};
    l->x = nb_alloc((unsigned long long)(l->cases * l->inputs), sizeof *l->x);
    l->w = nb_alloc((unsigned long long)(l->neurons * l->inputs), sizeof *l->w);
    for (int64_t i = 0; i < l->cases * l->inputs; i++) l->x[i] = nb_random_normal(x, (uint64_t)i);
    for (int64_t i = 0; i < l->neurons * l->inputs; i++) l->w[i] = nb_random_normal(w, (uint64_t)i);
}

static void layer_release(struct layer *l) {
    free(l->x);
    free(l->w);
}

static void products(const struct layer *l, double *a) {
    for (int64_t i = 0; i < l->cases; i++)
        for (int64_t j = 0; j < l->neurons; j++) {
            double sum = 0;
            for (int64_t k = 0; k < l->inputs; k++) sum += l->x[i * l->inputs + k] * l->w[j * l->inputs + k];
            a[i * l->neurons + j] = sum;
        }
}

static int normalized(const struct nb_property_call *call, struct layer *l, double *y) {
    const char *norm = nb_param_text(call, "norm");
    char kernel[64];
    if (strcmp(norm, "weightnorm") == 0) {
        for (int64_t j = 0; j < l->neurons; j++) {
            double *row = l->w + j * l->inputs;
            scale(row, l->inputs, 1 / (nb_rms_of(row, l->inputs) * sqrt((double)l->inputs)));
        }
        products(l, y);
        return 0;
    }
    double *a freed = nb_alloc((unsigned long long)(l->cases * l->neurons), sizeof *a);
    products(l, a);
    snprintf(kernel, sizeof kernel, "%.40s_twopass", norm);
    return nb_norm_plain(call, kernel, nb_param_number(call, "eps"), a, l->cases, l->neurons, y, "change");
}

/* Largest change of any output over the rms of all. */
static void try_change(const struct nb_property_call *call, const struct transformation *by) {
    struct layer before released_by(layer_release), after released_by(layer_release);
    layer_init(&before, call);
    layer_init(&after, call);
    apply_change(&after, by, nb_param_number(call, "factor"));
    const int64_t n = before.cases * before.neurons;
    double *y freed = nb_alloc(2 * (unsigned long long)n, sizeof *y), *z = y + n;
    if (normalized(call, &before, y) == 0 && normalized(call, &after, z) == 0)
        nb_finding_tag(nb_property_add(call, "change", "", nb_largest_difference(y, z, n) / nb_rms_of(y, n)), "under",
                       by->name);
}

static void invariance_run(const struct nb_property_call *call) {
    for (size_t i = 0; i < sizeof transformations / sizeof transformations[0]; i++)
        try_change(call, &transformations[i]);
}

/* printed_rows. Small demonstrations as they are printed: x - mean(x) alone, x / (std(x) + eps) alone, and whole norms, on given numbers, before and
 * after a shift and a factor; and how far a printed result is off, with the standard deviation over n - 1 or n. */

enum { MOST = 64 };

static void centre_row(const double *x, int n, double *y) {
    for (int i = 0; i < n; i++) y[i] = x[i] - nb_mean_of(x, n);
}

static void scale_row(const double *x, int n, double eps, int lost, double *y) {
    const double std = sqrt(nb_variance_of(x, n) * n / (n - lost));
    for (int i = 0; i < n; i++) y[i] = x[i] / (std + eps);
}

static int apply(const struct nb_property_call *call, const char *map, const double *x, int n, double *y) {
    const double eps = nb_param_number(call, "eps");
    if (strcmp(map, "centre") == 0)
        centre_row(x, n, y);
    else if (strcmp(map, "scale") == 0)
        scale_row(x, n, eps, 1, y);
    else
        return nb_norm_plain(call, map, eps, x, 1, n, y, "change");
    return 0;
}

static void try_map(const struct nb_property_call *call, const char *map, const double *x, int n) {
    static const char *const under[] = {"shift", "factor"};
    double y[MOST], z[MOST], moved[MOST];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < n; i++)
            moved[i] = k == 0 ? x[i] + nb_param_number(call, "shift") : x[i] * nb_param_number(call, "factor");
        if (apply(call, map, x, n, y) != 0 || apply(call, map, moved, n, z) != 0) return;
        struct nb_finding *f = nb_property_add(call, "change", "", nb_largest_difference(y, z, n) / nb_rms_of(y, n));
        nb_finding_tag(f, "map", map);
        nb_finding_tag(f, "under", under[k]);
    }
}

static void printed_rows_run(const struct nb_property_call *call) {
    double x[MOST], y[MOST], printed[MOST];
    const int n = nb_param_count(call, "x") < MOST ? nb_param_count(call, "x") : MOST;
    for (int i = 0; i < n; i++) {
        x[i] = nb_param_number_at(call, "x", i);
        printed[i] = nb_param_number_at(call, "printed", i);
    }
    for (int i = 0; i < nb_param_count(call, "map"); i++) try_map(call, nb_param_text_at(call, "map", i), x, n);
    for (int lost = 0; lost < 2 && nb_param_count(call, "printed") == n; lost++) {
        scale_row(x, n, nb_param_number(call, "eps"), lost, y);
        nb_finding_tag(nb_property_add(call, "off_print", "", nb_largest_difference(y, printed, n)), "std_over",
                       lost ? "n - 1" : "n");
    }
}

const struct nb_property nb_property_invariance[] = {
    {"invariance",
     "what leaves norm(X W^T) as it is",
     invariance_run,
     {{"norm", "[\"batchnorm\", \"weightnorm\", \"layernorm\", \"rmsnorm\", \"prmsnorm\"]", "by the kernels *_twopass",
       false, "norm"},
      {"cases", "32", "", true, NULL},
      {"inputs", "48", "", true, NULL},
      {"neurons", "64", "", true, NULL},
      {"factor", "3.7", "of re-scaling", false, NULL},
      {"eps", "0", "invariance to scale is exact for 0 alone", false, NULL}}},
    {"printed_rows",
     "printed demonstrations, shifted and scaled",
     printed_rows_run,
     {{"x", "[0, 1, 2, 3]", "", false, NULL},
      {"map", "[\"centre\", \"scale\", \"layernorm_twopass\", \"rmsnorm_twopass\"]", "centre, scale, or kernels", false,
       NULL},
      {"shift", "10", "added to every element", false, NULL},
      {"factor", "10", "of every element", false, NULL},
      {"eps", "1e-5", "", false, NULL},
      {"printed", "[0, 0.7746, 1.5492, 2.3238]", "what the source prints for map `scale`", false, NULL}}},
    {.name = NULL}};
