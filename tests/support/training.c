// SPDX-License-Identifier: Apache-2.0
/* A direction of length about 1.4 in each parameter: the gradient's own, which shows errors of its size, and a random one, which shows
 * errors across it. */
#include "tests/support/training.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/registry.h"
#include "tests/support/products.h"
#include "tests/support/sparsely.h"

static const char prose[] =
    "The quick measurement of a slow program is worth less than the slow measurement of a quick one. A program that is "
    "measured once has been measured by chance; a program that is measured often, beside the one that it is compared "
    "with, tells the difference between the two and not the weather of the machine. Whoever publishes a number owes "
    "the "
    "reader the shape of the input, the machine, and how often the measurement was repeated. A licence to copy the "
    "program "
    "is a licence to repeat the measurement, and a measurement that nobody can repeat is a story. Stories have their "
    "place: they say why somebody began to measure, which program was slow, and what the reader of the number wanted "
    "to "
    "know. The difference between a story and a measurement is that a measurement can come out the other way. ";

struct nb_text plain_text(void) {
    struct nb_text text = {.n = sizeof prose - 1};
    static unsigned char bytes[sizeof prose];
    memcpy(bytes, prose, sizeof prose);
    text.bytes = bytes;
    return text;
}

struct nb_train_options arm_of(enum nb_norm_kind kind, enum nb_style style) {
    return (struct nb_train_options){.norm = {.kind = kind, .style = style, .affine = NB_NORM_LEARNED},
                                     .residual = true,
                                     .causal = true,
                                     .dtype = NB_F32,
                                     .seed = 7,
                                     .n_threads = 1};
}

void start_model(struct nb_model *model, const struct nb_workload *workload, const struct nb_train_options *options) {
    if (nb_registry_size() == 0) cr_assert_eq(nb_registry_load_builtin(), 0);
    cr_assert_eq(nb_model_init(model, workload, options), 0, "%s", workload->name);
}

void make_model(struct nb_model *model, const char *workload, const struct nb_train_options *options) {
    const struct nb_workload *found = nb_workload_find(workload);
    cr_assert_not_null(found, "%s", workload);
    start_model(model, found, options);
}

static int64_t size_of(const struct nb_parameter *p) { return p->rows * p->cols; }

static void disturb(struct nb_parameters *all) {
    for (int i = 0; i < all->n; i++) {
        struct nb_parameter *p = &all->items[i];
        const struct nb_random r = nb_random_stream(11, (uint64_t)i);
        for (int64_t j = 0; !p->decays && j < size_of(p); j++)
            p->value[j] += (float)(0.2 * nb_random_normal(r, (uint64_t)j));
    }
}

static double length_of(const float *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)v[i] * (double)v[i];
    return sqrt(sum);
}

static float *draw_direction(const struct nb_parameter *p, uint64_t stream) {
    const int64_t n = size_of(p);
    float *direction = nb_alloc((unsigned long long)n, sizeof *direction);
    const struct nb_random r = nb_random_stream(13, stream);
    for (int64_t i = 0; i < n; i++) direction[i] = (float)nb_random_normal(r, (uint64_t)i);
    const double random = length_of(direction, n), gradient = length_of(p->gradient, n);
    for (int64_t i = 0; i < n; i++)
        direction[i] = (float)((double)direction[i] / random + (gradient > 0 ? (double)p->gradient[i] / gradient : 0));
    return direction;
}

static double loss_beside(struct nb_model *model, const struct nb_text *text, struct nb_parameter *p,
                          const float *direction, const float *home, double distance) {
    for (int64_t i = 0; i < size_of(p); i++) p->value[i] = (float)((double)home[i] + distance * (double)direction[i]);
    const double loss = nb_model_forward(model, text, 0, true);
    memcpy(p->value, home, (size_t)size_of(p) * sizeof *home);
    return loss;
}

/* By differences of fourth order. */
static double slope_along(struct nb_model *model, const struct nb_text *text, struct nb_parameter *p,
                          const float *direction, const float *home, double h) {
    double loss[5];
    for (int i = -2; i <= 2; i++) loss[i + 2] = i == 0 ? 0 : loss_beside(model, text, p, direction, home, i * h);
    return (8 * (loss[3] - loss[1]) - (loss[4] - loss[0])) / (12 * h);
}

/* Of the formula above: sqrt(2 * 8^2 + 2) / 12 deviations of the loss over h. Never more than MOST_ROUNDINGS: at the shortest distance
 * the deviations alone would let a wrong gradient pass. */
#define MOST_ROUNDINGS 3e-4
static double roundings(double noise, double h) { return fmin(NB_TEST_DEVIATIONS * 0.95 * noise / h, MOST_ROUNDINGS); }

/* Long distances suffer from curvature and from hinges that open on the way, short ones from roundings of the loss: one of them must do. */
static void assert_gradient(struct nb_model *model, const struct nb_text *text, struct nb_parameter *p, uint64_t stream,
                            double noise, const char *what) {
    static const double distances[] = {4e-3, 1e-3, 2.5e-4};
    float *direction = draw_direction(p, stream);
    float *home = nb_alloc((unsigned long long)size_of(p), sizeof *home);
    memcpy(home, p->value, (size_t)size_of(p) * sizeof *home);
    double expected = 0, slope = 0, excess = INFINITY;
    for (int64_t i = 0; i < size_of(p); i++) expected += (double)direction[i] * (double)p->gradient[i];
    for (size_t i = 0; i < sizeof distances / sizeof distances[0]; i++) {
        const double s = slope_along(model, text, p, direction, home, distances[i]);
        const double beyond = fabs(s - expected) - 5e-3 * fabs(expected) - roundings(noise, distances[i]);
        if (!(beyond < excess)) continue;
        slope = s;
        excess = beyond;
    }
    cr_expect(excess <= 0, "%s, %s: the loss changes by %g, not by %g", what, p->name, slope, expected);
    free(direction);
    free(home);
}

struct batch {
    struct nb_model *model;
    const struct nb_text *text;
};
static double loss_of(void *batch) {
    const struct batch *b = batch;
    return nb_model_forward(b->model, b->text, 0, true);
}

void assert_gradients(struct nb_model *model, const struct nb_text *text, const char *what) {
    disturb(&model->parameters);
    nb_parameters_zero_gradients(&model->parameters);
    const double noise = nb_test_products_noise(loss_of, &(struct batch){model, text});
    cr_assert(isfinite(nb_model_forward(model, text, 0, true)), "%s", what);
    nb_model_backward(model, 1);
    for (int i = 0; i < model->parameters.n; i += sparsely()) {
        struct nb_parameter *p = &model->parameters.items[i];
        assert_gradient(model, text, p, (uint64_t)i, noise, what);
    }
}
