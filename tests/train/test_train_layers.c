// SPDX-License-Identifier: Apache-2.0
/* Every layer's backward pass against central differences of its forward pass. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/core/names.h"
#include "src/core/random.h"
#include "src/train/layers.h"
#include "src/train/norm_layer.h"
#include "src/train/tensor.h"
#include "tests/support/products.h"
#include "tests/support/train.h"

enum { ROWS = 6, COLS = 8, OUT = 5, N = ROWS * COLS };

static void draw(float *values, int64_t n, uint64_t stream) {
    for (int64_t i = 0; i < n; i++) values[i] = (float)nb_random_normal(nb_random_stream(7, stream), (uint64_t)i);
}
/* The gradient that comes into backward is w where the loss is the sum of w y. */
static double weighted(const float *w, const float *y, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)w[i] * (double)y[i];
    return sum;
}

struct gate_test {
    float gate[N], up[N], y[N], w[N];
};
static double swiglu_loss(void *context) {
    struct gate_test *t = context;
    nb_swiglu_forward(t->y, t->gate, t->up, N);
    return weighted(t->w, t->y, N);
}
static double relu_loss(void *context) {
    struct gate_test *t = context;
    nb_relu_forward(t->y, t->gate, N);
    return weighted(t->w, t->y, N);
}
Test(train_layers, swiglu_and_relu) {
    struct gate_test t;
    float dgate[N], dup[N];
    draw(t.gate, N, 1);
    draw(t.up, N, 2);
    draw(t.w, N, 3);
    nb_swiglu_backward(dgate, dup, t.w, t.gate, t.up, N);
    const struct nb_test_loss swiglu = {swiglu_loss, &t, nb_test_noise_of_sum(N, 8)},
                              relu = {relu_loss, &t, nb_test_noise_of_sum(N, 1)};
    nb_test_gradient("gate", &swiglu, t.gate, dgate, N, 0.0625);
    nb_test_gradient("up", &swiglu, t.up, dup, N, 0.0625);
    for (int i = 0; i < N; i++) /* away from the corner */
        if (fabsf(t.gate[i]) < 0.1f) t.gate[i] = 0.5f;
    nb_relu_backward(dgate, t.w, t.gate, N);
    nb_test_gradient("relu", &relu, t.gate, dgate, N, 0.0625);
}

struct rope_test {
    struct nb_rope rope;
    float x[N], y[N], w[N];
};
static double rope_loss(void *context) {
    struct rope_test *t = context;
    memcpy(t->y, t->x, sizeof t->x);
    nb_rope_forward(&t->rope, t->y, ROWS, 2);
    return weighted(t->w, t->y, N);
}
Test(train_layers, rotation_turns_pairs_by_their_position_and_back) {
    struct rope_test t;
    float d[N];
    struct nb_arena arena = {0};
    nb_rope_init(&t.rope, &arena, 3, 4, 100); /* two heads of 4, rows 3 to 5 stand at positions 0 to 2 again */
    draw(t.x, N, 1);
    draw(t.w, N, 2);
    memcpy(d, t.w, sizeof d);
    nb_rope_backward(&t.rope, d, ROWS, 2);
    nb_test_gradient("rope", &(struct nb_test_loss){rope_loss, &t, nb_test_noise_of_sum(N, 5)}, t.x, d, N, 0.25);
    rope_loss(&t);
    cr_assert_float_eq(t.y[COLS], t.x[COLS] * cosf(1) - t.x[COLS + 2] * sinf(1), 1e-6); /* row 1, frequency 1 */
    cr_assert_float_eq(t.y[COLS + 3], t.x[COLS + 3] * cosf(0.1f) + t.x[COLS + 1] * sinf(0.1f), 1e-6); /* 100^(-1/2) */
    cr_assert_float_eq(t.y[3 * COLS + 1], t.x[3 * COLS + 1], 0);                                      /* position 0 */
    nb_rope_backward(&t.rope, t.y, ROWS, 2);
    for (int i = 0; i < N; i++) cr_assert_float_eq(t.y[i], t.x[i], 1e-6);
    nb_arena_release(&arena);
}

struct linear_test {
    float x[N], w[OUT * COLS], bias[OUT], y[ROWS * OUT], weights[ROWS * OUT];
};
static double linear_loss(void *context) {
    struct linear_test *t = context;
    nb_linear_forward(t->y, t->x, t->w, t->bias, ROWS, COLS, OUT);
    return weighted(t->weights, t->y, ROWS * OUT);
}
Test(train_layers, linear) {
    struct linear_test t;
    float dx[N], dw[OUT * COLS] = {0}, dbias[OUT] = {0};
    cr_assert_eq(nb_matrix_open(1), 0);
    draw(t.x, N, 1);
    draw(t.w, OUT * COLS, 2);
    draw(t.bias, OUT, 3);
    draw(t.weights, ROWS * OUT, 4);
    nb_linear_backward(dx, dw, dbias, t.weights, t.x, t.w, ROWS, COLS, OUT);
    const struct nb_test_loss loss = {linear_loss, &t, nb_test_products_noise(linear_loss, &t)};
    nb_test_gradient("x", &loss, t.x, dx, N, 0.25);
    nb_test_gradient("w", &loss, t.w, dw, OUT * COLS, 0.25);
    nb_test_gradient("bias", &loss, t.bias, dbias, OUT, 0.25);
    const float before = dw[3];
    nb_linear_backward(NULL, dw, NULL, t.weights, t.x, t.w, ROWS, COLS, OUT);
    cr_assert_float_eq(dw[3], 2 * before, 1e-5, "gradients add up");
}

struct entropy_test {
    float logits[N], p[N];
    int32_t targets[ROWS];
};
static double entropy_loss(void *context) {
    struct entropy_test *t = context;
    return 3 * nb_cross_entropy_forward(t->p, t->logits, t->targets, ROWS, COLS);
}
Test(train_layers, cross_entropy_of_rows_with_a_target) {
    struct entropy_test t = {.targets = {0, 7, -1, 3, 3, -1}};
    float d[N];
    draw(t.logits, N, 1);
    entropy_loss(&t);
    nb_cross_entropy_backward(d, t.p, t.targets, ROWS, COLS, 3);
    nb_test_gradient("logits", &(struct nb_test_loss){entropy_loss, &t, nb_test_noise_of_sum(ROWS, 8)}, t.logits, d, N,
                     0.0625);
    memset(t.logits, 0, sizeof t.logits);
    cr_assert_float_eq(entropy_loss(&t) / 3, log(COLS), 1e-7);
    for (int i = 0; i < N; i++) t.logits[i] = i % COLS == 0 ? 1000 : -1000; /* exp alone would overflow */
    cr_assert_float_eq(entropy_loss(&t) / 3, 2000.0 * 3 / 4, 1e-3);
    for (int r = 0; r < ROWS; r++) t.targets[r] = -1;
    cr_assert_eq(entropy_loss(&t), 0);
    nb_cross_entropy_backward(d, t.p, t.targets, ROWS, COLS, 3);
    for (int i = 0; i < N; i++) cr_assert_eq(d[i], 0);
}

struct embedding_test {
    float table[4 * COLS], y[N], w[N];
};
static const int32_t tokens[ROWS] = {0, 3, 3, 1, 0, 3};
static double embedding_loss(void *context) {
    struct embedding_test *t = context;
    nb_embedding_forward(t->y, t->table, tokens, ROWS, COLS, 2);
    return weighted(t->w, t->y, N);
}
Test(train_layers, embedding_adds_up_what_comes_back_to_a_token) {
    struct embedding_test t;
    float d[4 * COLS] = {0};
    draw(t.table, 4 * COLS, 1);
    draw(t.w, N, 2);
    nb_embedding_backward(d, t.w, tokens, ROWS, COLS, 2);
    nb_test_gradient("table", &(struct nb_test_loss){embedding_loss, &t, nb_test_noise_of_sum(N, 1)}, t.table, d,
                     4 * COLS, 0.25);
    float y[N] = {0};
    nb_positions_add(y, ROWS, 3, COLS);
    cr_assert_float_eq(y[COLS], sinf(1), 1e-6);
    cr_assert_float_eq(y[4 * COLS + 3], cosf(0.1f), 1e-6); /* position 1, 10000^(-2/8) */
    cr_assert_float_eq(y[3 * COLS + 1], 1, 0);
}

struct norm_test {
    struct nb_model model;
    struct nb_norm_layer layer;
    float x[N], y[N], w[N];
};
static double norm_loss(void *context) {
    struct norm_test *t = context;
    return weighted(t->w, nb_norm_forward(&t->layer, t->y, t->x, 0, ROWS, true), N);
}
static void open_norm(struct norm_test *t, const struct nb_norm_choice *choice) {
    *t = (struct norm_test){0};
    nb_test_load_kernels();
    t->model.options.norm = *choice;
    nb_norm_layer_init(&t->layer, &t->model, "n", ROWS, COLS);
    cr_assert(!t->model.failed);
    draw(t->x, N, 1);
    draw(t->w, N, 2);
    for (int i = 0; i < N; i++) t->x[i] += 0.5f; /* a mean, which some take away */
    for (int i = 0; i < t->model.parameters.n; i++)
        for (int j = 0; j < COLS; j++) t->model.parameters.items[i].value[j] += 0.125f * (float)(j % 3);
}
Test(train_layers, every_norm_in_every_style) {
    for (int kind = 0; kind < NB_N_NORM_KINDS; kind++)
        for (int style = 0; style < NB_N_STYLES; style++) {
            struct norm_test t;
            char what[80];
            float dx[N];
            open_norm(&t, &(struct nb_norm_choice){.kind = kind, .style = style, .eps = 1e-2, .partial = 0.5});
            norm_loss(&t);
            const float *gradient = nb_norm_backward(&t.layer, dx, t.w, t.x, 0, ROWS);
            const struct nb_test_loss loss = {norm_loss, &t,
                                              nb_test_noise_of_sum(N, COLS + 8)}; /* statistics, then each element */
            snprintf(what, sizeof what, "%s %s x", nb_norm_kind_names[kind], nb_style_names[style]);
            nb_test_gradient(what, &loss, t.x, gradient, N, 0.03125);
            for (int i = 0; i < t.model.parameters.n; i++)
                nb_test_gradient(t.model.parameters.items[i].name, &loss, t.model.parameters.items[i].value,
                                 t.model.parameters.items[i].gradient, COLS, 0.25);
            cr_assert_eq(t.model.norm_calls > 0 && t.model.norm_seconds[NB_FORWARD] > 0, kind != NB_NORM_NONE);
            nb_model_release(&t.model);
        }
}

/* By the formulas, in double. */
static double by_formula(enum nb_norm_kind kind, const float *row, int i, double eps) {
    double mean = 0, square = 0, first = 0;
    for (int j = 0; j < COLS; j++) mean += row[j] / (double)COLS;
    for (int j = 0; j < COLS; j++) square += (double)row[j] * row[j] / COLS;
    for (int j = 0; j < COLS / 2; j++) first += (double)row[j] * row[j] / (COLS / 2);
    const double deviation = sqrt(square - mean * mean + eps), gain = 1 + 0.125 * (i % 3), shift = 0.125 * (i % 3);
    switch (kind) {
    case NB_NORM_LAYERNORM:
        return (row[i] - mean) / deviation * gain + shift;
    case NB_NORM_RMSNORM:
        return row[i] / sqrt(square + eps) * gain;
    case NB_NORM_PRMSNORM:
        return row[i] / sqrt(first + eps) * gain;
    case NB_NORM_CENTRE:
        return (row[i] - mean) * gain;
    case NB_NORM_SCALE:
        return row[i] / deviation * gain;
    default:
        return row[i];
    }
}
Test(train_layers, norms_of_rows_are_what_they_are_called) {
    for (int kind = 0; kind < NB_N_NORM_KINDS; kind++)
        for (int style = 0; style < NB_N_STYLES && kind != NB_NORM_BATCHNORM; style++) {
            struct norm_test t;
            open_norm(&t, &(struct nb_norm_choice){.kind = kind, .style = style, .eps = 1e-2, .partial = 0.5});
            const float *y = nb_norm_forward(&t.layer, t.y, t.x, 0, ROWS, true);
            cr_assert(y == (kind == NB_NORM_NONE ? t.x : t.y), "without a norm nothing is copied");
            for (int i = 0; i < N; i++)
                cr_assert_float_eq(y[i], by_formula(kind, t.x + i / COLS * COLS, i % COLS, 1e-2), 2e-6, "%s %s",
                                   nb_norm_kind_names[kind], nb_style_names[style]);
            nb_model_release(&t.model);
        }
}

Test(train_layers, batchnorm_trains_on_the_batch_and_infers_from_what_it_kept) {
    struct norm_test t;
    float inferred[N];
    open_norm(&t, &(struct nb_norm_choice){.kind = NB_NORM_BATCHNORM, .eps = 1e-5});
    double mean = 0, square = 0;
    for (int r = 0; r < ROWS; r++) mean += t.x[r * COLS] / (double)ROWS;
    for (int r = 0; r < ROWS; r++) square += (double)t.x[r * COLS] * t.x[r * COLS] / ROWS;
    const double var = square - mean * mean;
    norm_loss(&t);
    cr_assert_float_eq(t.y[0], (t.x[0] - mean) / sqrt(var + 1e-5), 2e-6);
    cr_assert_float_eq(t.layer.running_mean[0], 0.1 * mean, 1e-6);
    cr_assert_float_eq(t.layer.running_var[0], 0.9 + 0.1 * var * ROWS / (ROWS - 1), 1e-6);
    nb_norm_forward(&t.layer, inferred, t.x, 0, ROWS, false);
    cr_assert_float_eq(inferred[0], (t.x[0] - 0.1 * mean) / sqrt(t.layer.running_var[0] + 1e-5), 1e-5);
    cr_assert_float_eq(t.layer.running_mean[0], 0.1 * mean, 1e-6, "inference moves nothing");
    nb_model_release(&t.model);
}
