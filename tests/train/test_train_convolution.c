// SPDX-License-Identifier: Apache-2.0
/* Convolutions and pooling against their definitions; the whole gradient of the small net against central differences. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/train/convpool.c"
#include "src/train/data.h"
#include "src/train/tensor.h"
#include "src/train/workload.h"
#include "tests/support/products.h"
#include "tests/support/train.h"

static void draw(float *values, int64_t n, uint64_t stream) {
    for (int64_t i = 0; i < n; i++) values[i] = (float)nb_random_normal(nb_random_stream(9, stream), (uint64_t)i);
}

static float at(const struct convolution *c, const float *x, int64_t image, int64_t channel, int64_t row, int64_t col) {
    if (row < 0 || row >= c->height || col < 0 || col >= c->width) return 0;
    return x[((image * c->in + channel) * c->height + row) * c->width + col];
}

/* By definition. */
/* reach: what a sum of so many terms in f32, in any order, may be off by. */
static double convolved(const struct convolution *c, const float *x, const float *w, int64_t image, int64_t out,
                        int64_t row, int64_t col, double *reach) {
    const int64_t s = c->side;
    double sum = 0, size = 0;
    for (int64_t in = 0; in < c->in; in++)
        for (int64_t i = 0; i < s; i++)
            for (int64_t j = 0; j < s; j++) {
                const double term = (double)w[((out * c->in + in) * s + i) * s + j] *
                                    (double)at(c, x, image, in, row + i - s / 2, col + j - s / 2);
                sum += term;
                size += fabs(term);
            }
    *reach = (double)(c->in * s * s) * 0x1p-24 * size;
    return sum;
}

enum { MOST = 2 * 4 * 5 * 6, MOST_W = 4 * 3 * 25 };
struct trial {
    struct convolution c;
    float x[MOST], w[MOST_W], y[MOST], weights[MOST], columns[3 * 25 * 30];
};
static double trial_loss(void *context) {
    struct trial *t = context;
    double sum = 0;
    convolution_forward(&t->c, t->y, t->x, t->w, t->columns);
    for (int64_t i = 0; i < t->c.batch * t->c.out * t->c.height * t->c.width; i++)
        sum += (double)t->weights[i] * (double)t->y[i];
    return sum;
}

Test(train_convolution, as_defined_and_its_gradient) {
    static const int64_t sides[] = {1, 3, 5};
    cr_assert_eq(nb_matrix_open(1), 0);
    for (int s = 0; s < 3; s++) {
        struct trial t = {.c = {.batch = 2, .height = 5, .width = 6, .in = 3, .out = 4, .side = sides[s]}};
        float dx[MOST], dw[MOST_W] = {0};
        draw(t.x, MOST, 1);
        draw(t.w, MOST_W, 2);
        draw(t.weights, MOST, 3);
        trial_loss(&t);
        for (int64_t i = 0, image = 0; image < 2; image++)
            for (int64_t out = 0; out < 4; out++)
                for (int64_t row = 0; row < 5; row++)
                    for (int64_t col = 0; col < 6; col++, i++) {
                        double reach;
                        const double y = convolved(&t.c, t.x, t.w, image, out, row, col, &reach);
                        cr_expect_float_eq(t.y[i], y, reach);
                    }
        convolution_backward(&t.c, dx, dw, t.weights, t.x, t.w, t.columns);
        const struct nb_test_loss loss = {trial_loss, &t, nb_test_products_noise(trial_loss, &t)};
        nb_test_gradient("x", &loss, t.x, dx, 2 * 3 * 30, 0.25);
        nb_test_gradient("w", &loss, t.w, dw, 4 * 3 * sides[s] * sides[s], 0.25);
        convolution_backward(&t.c, NULL, dw, t.weights, t.x, t.w, t.columns);
        for (int i = 0; i < 4 * 3 * sides[s] * sides[s]; i++) dw[i] /= 2;
        nb_test_gradient("w, added to", &loss, t.w, dw, 4 * 3 * sides[s] * sides[s], 0.25);
    }
}

Test(train_convolution, pooling_takes_the_largest_and_the_mean) {
    const float x[16] = {1, 2, 9, 0, 3, 4, 0, 0, 5, 5, -1, -2, 5, 5, -3, -4}, dy[4] = {1, 2, 3, 4};
    float y[4], dx[16], sum = 0;
    int32_t from[4];
    max_pool_forward(y, from, x, 1, 4, 4);
    cr_expect(y[0] == 4 && y[1] == 9 && y[2] == 5 && y[3] == -1);
    max_pool_backward(dx, dy, from, 1, 4, 4);
    for (int i = 0; i < 16; i++) sum += dx[i];
    cr_expect(dx[5] == 1 && dx[2] == 2 && dx[8] == 3 && dx[10] == 4 && sum == 10);
    mean_pool_forward(y, x, 2, 8);
    cr_expect(y[0] == 19.0f / 8 && y[1] == 10.0f / 8);
    mean_pool_backward(dx, dy, 2, 8);
    cr_expect(dx[0] == 0.125f && dx[7] == 0.125f && dx[8] == 0.25f);
}

Test(train_convolution, images_are_what_their_number_says) {
    float a[3 * 64], b[3 * 64];
    int seen[NB_TEXTURE_CLASSES] = {0};
    for (uint64_t i = 0; i < 200; i++) {
        const int32_t class = nb_texture(a, i, 8);
        cr_assert(class >= 0 && class < NB_TEXTURE_CLASSES);
        seen[class]++;
        cr_expect_eq(nb_texture(b, i, 8), class);
        cr_expect_eq(memcmp(a, b, sizeof a), 0);
    }
    for (int c = 0; c < NB_TEXTURE_CLASSES; c++) cr_expect_gt(seen[c], 5);
}

/* ---- the net ---- */

static double net_loss(void *context) { return nb_model_forward(context, NULL, 2, true); }

/* The slope of the loss along u, by a central difference of step h. */
static double slope(struct nb_model *model, struct nb_parameter *p, const double *u, double h) {
    const int64_t n = p->rows * p->cols;
    float *kept = nb_alloc((unsigned long long)n, sizeof *kept);
    double ends[2];
    memcpy(kept, p->value, (size_t)n * sizeof *kept);
    for (int end = 0; end < 2; end++) {
        for (int64_t j = 0; j < n; j++) p->value[j] = (float)((double)kept[j] + (end ? h : -h) * u[j]);
        ends[end] = net_loss(model);
    }
    memcpy(p->value, kept, (size_t)n * sizeof *kept);
    free(kept);
    return (ends[1] - ends[0]) / (2 * h);
}

/* Along the gradient. Leaky ReLUs and maxima have corners, and norms of flat planes bend sharply: what two steps differ by is allowed, as
 * long as it is little. Returns whether it was. */
static bool check_parameter(const char *arm, struct nb_model *model, struct nb_parameter *p, double noise) {
    const int64_t n = p->rows * p->cols;
    double length = 0, *u = nb_alloc((unsigned long long)n, sizeof *u);
    for (int64_t j = 0; j < n; j++) length += (double)p->gradient[j] * (double)p->gradient[j];
    length = sqrt(length);
    for (int64_t j = 0; j < n; j++) u[j] = (double)p->gradient[j] / length;
    const double step = 2.5e-4, wide = slope(model, p, u, 4 * step), narrow = slope(model, p, u, step);
    const double roundings = NB_TEST_DEVIATIONS * noise / (sqrt(2) * step);
    const double allowed = 2 * fabs(wide - narrow) + 0.05 * length + roundings;
    cr_expect_float_eq(narrow, length, allowed, "%s: %s: slope %g, gradient %g, allowed %g", arm, p->name, narrow,
                       length, allowed);
    free(u);
    return allowed < 0.25 * length;
}

static void check_net(const char *arm) {
    struct nb_train_options o;
    struct nb_model model;
    char reason[200];
    int n_sharp = 0;
    cr_assert_null(nb_arm_parse(&o, NULL, arm, reason, sizeof reason), "%s", reason);
    o.hidden = 4;
    o.batch = 4;
    o.sequence = 16;
    o.norm.eps = 0.01;
    cr_assert_eq(nb_model_init(&model, &nb_workload_tiny_convpool, &o), 0);
    net_loss(&model);
    nb_model_backward(&model, 1);
    const double noise = nb_test_products_noise(net_loss, &model);
    for (int i = 0; i < model.parameters.n; i++)
        if (!model.parameters.items[i].frozen)
            n_sharp += check_parameter(arm, &model, &model.parameters.items[i], noise);
    cr_expect_geq(n_sharp, 9, "%s: only %d of %d are decided", arm, n_sharp, model.parameters.n);
    nb_model_release(&model);
}

Test(train_convolution, the_nets_gradient_with_every_norm, .init = nb_test_load_kernels) {
    static const char *const arms[] = {"none",
                                       "layernorm fused",
                                       "layernorm composed",
                                       "rmsnorm fused",
                                       "rmsnorm composed",
                                       "prmsnorm composed",
                                       "batchnorm fused",
                                       "batchnorm composed",
                                       "centre",
                                       "scale"};
    for (size_t i = 0; i < sizeof arms / sizeof arms[0]; i++) check_net(arms[i]);
}

Test(train_convolution, it_learns, .init = nb_test_load_kernels) {
    struct nb_train_options o;
    struct nb_model model;
    char reason[200];
    double first = 0, last = 0;
    nb_arm_parse(&o, NULL, "batchnorm", reason, sizeof reason);
    cr_assert_eq(nb_model_init(&model, &nb_workload_tiny_convpool, &o), 0);
    for (int s = 0; s < 100; s++) {
        const double loss = nb_model_step(&model, NULL, s);
        if (s < 10) first += loss / 10;
        if (s >= 90) last += loss / 10;
    }
    cr_expect_lt(last, first - 0.3, "from %g to %g", first, last);
    cr_expect_gt(model.norm_seconds[NB_FORWARD], 0);
    nb_model_release(&model);
}
