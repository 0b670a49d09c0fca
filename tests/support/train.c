// SPDX-License-Identifier: Apache-2.0
/* Central differences with a tolerance that comes from the step. */
#include "tests/support/train.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/registry.h"
#include "src/train/transformer.h"
#include "tests/support/products.h"

enum { MOST_ELEMENTS = 40 };

struct slope {
    double value, tolerance;
};

/* The difference of two values over twice the step is off by noise / (sqrt(2) h), with half the step by sqrt(2) noise / h, and the
 * extrapolated slope by sqrt(32 / 9 + 1 / 18) = 1.9 noise / h. */
static double reach(double noise, double h) { return NB_TEST_DEVIATIONS * 1.9 * noise / h; }

/* The error of the extrapolated slope is of the order h^4; that of the worse of the two it is made of bounds it amply. */
static struct slope extrapolate(double at_h, double at_half, double noise, double h) {
    return (struct slope){(4 * at_half - at_h) / 3, fabs(at_half - at_h) + reach(noise, h)};
}

double nb_test_noise_of_sum(int64_t n, int roundings) { return sqrt((double)n * roundings / 3) * 0x1p-24; }

static double slope_at(const struct nb_test_loss *loss, float *where, double h) {
    const float kept = *where, up = (float)(kept + h), down = (float)(kept - h);
    *where = up;
    const double above = loss->value(loss->context);
    *where = down;
    const double below = loss->value(loss->context);
    *where = kept;
    return (above - below) / ((double)up - (double)down);
}

void nb_test_gradient(const char *what, const struct nb_test_loss *loss, float *values, const float *gradient,
                      int64_t n, double h) {
    const int64_t stride = n > MOST_ELEMENTS ? n / MOST_ELEMENTS : 1;
    double largest = 0, widest = 0;
    for (int64_t i = 0; i < n; i += stride) {
        const struct slope s =
            extrapolate(slope_at(loss, values + i, h), slope_at(loss, values + i, h / 2), loss->noise, h);
        cr_assert_leq(fabs(s.value - gradient[i]), s.tolerance, "%s[%lld]: gradient %.7g, differences %.7g +- %.2g",
                      what, (long long)i, gradient[i], s.value, s.tolerance);
        largest = fmax(largest, fabs(s.value));
        widest = fmax(widest, s.tolerance);
    }
    cr_assert_lt(widest, 0.1 * largest, "%s: differences are too rough to tell: %.2g of %.2g", what, widest, largest);
}

static double along(const struct nb_test_loss *loss, float *values, const float *kept, const double *u, int64_t n,
                    double h) {
    for (int64_t i = 0; i < n; i++) values[i] = (float)(kept[i] + h * u[i]);
    const double above = loss->value(loss->context);
    for (int64_t i = 0; i < n; i++) values[i] = (float)(kept[i] - h * u[i]);
    const double below = loss->value(loss->context);
    memcpy(values, kept, (size_t)n * sizeof *values);
    return (above - below) / (2 * h);
}

void nb_test_direction(const char *what, const struct nb_test_loss *loss, float *values, const float *gradient,
                       const double *u, int64_t n, double h) {
    double expected = 0, length = 0;
    float *kept = malloc((size_t)n * sizeof *kept);
    memcpy(kept, values, (size_t)n * sizeof *kept);
    for (int64_t i = 0; i < n; i++) expected += u[i] * gradient[i];
    for (int64_t i = 0; i < n; i++) length += (double)gradient[i] * (double)gradient[i];
    const struct slope s =
        extrapolate(along(loss, values, kept, u, n, h), along(loss, values, kept, u, n, h / 2), loss->noise, h);
    free(kept);
    cr_assert_leq(fabs(s.value - expected), s.tolerance, "%s: gradient %.7g, differences %.7g +- %.2g", what, expected,
                  s.value, s.tolerance);
    cr_assert_lt(s.tolerance, 0.05 * sqrt(length) + 2 * reach(loss->noise, h),
                 "%s: differences are too rough to tell: %.2g of %.2g", what, s.tolerance, sqrt(length));
}

void nb_test_load_kernels(void) {
    if (nb_registry_size() == 0) cr_assert_eq(nb_registry_load_builtin(), 0);
}

/* ---- a small transformer ---- */

const struct nb_transformer_shape nb_test_transformer_shape = {.hidden = 16,
                                                               .layers = 2,
                                                               .heads = 4,
                                                               .kv_heads = 2,
                                                               .ffn = 24,
                                                               .vocabulary = 32,
                                                               .batch = 2,
                                                               .sequence = 6,
                                                               .swiglu = true,
                                                               .rope_theta = 1e4,
                                                               .eps = 1e-5,
                                                               .deviation = 0.3,
                                                               .learning_rate = 1e-3,
                                                               .beta2 = 0.999,
                                                               .adam_eps = 1e-8,
                                                               .decay = 0.01};

struct nb_train_options nb_test_train_options(enum nb_norm_kind kind, enum nb_style style, enum nb_norm_place place) {
    return (struct nb_train_options){.norm = {.kind = kind, .style = style, .partial = 0.25},
                                     .place = place,
                                     .residual = true,
                                     .causal = true,
                                     .seed = 1,
                                     .n_threads = 1};
}

static struct nb_optimizer as_pytorch(const void *own, const struct nb_train_options *o) {
    (void)own;
    return (struct nb_optimizer){
        .kind = NB_ADAMW, .learning_rate = o->learning_rate, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.01};
}

void nb_test_transformer(struct nb_model *model, const struct nb_transformer_shape *shape,
                         const struct nb_train_options *options) {
    static struct nb_model_family family;
    static struct nb_workload workload;
    family = nb_transformer_family;
    family.optimizer = as_pytorch;
    workload = (struct nb_workload){.name = "test", .own = shape, .family = &family};
    nb_test_load_kernels();
    cr_assert_eq(nb_model_init(model, &workload, options), 0);
}

struct nb_text nb_test_text(void) {
    static unsigned char bytes[997]; /* a prime: sequences begin anywhere */
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)((i * i + 3 * i) % 29);
    return (struct nb_text){.bytes = bytes, .n = sizeof bytes, .path = "test"};
}
