// SPDX-License-Identifier: Apache-2.0
/* Losses, gradients and clipped AdamW steps of small transformers against PyTorch's in f64, recorded by tests/tools/torch_transformer.py. */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/names.h"
#include "src/train/transformer.h"
#include "tests/support/files.h"
#include "tests/support/products.h"
#include "tests/support/sparsely.h"
#include "tests/support/train.h"

enum { FIRST = 6, STEPS = 3, MOST_TOKENS = 64 };

/* As the script has it: in [-1, 1] in steps of 1/1001. */
static double formula(const char *name, int64_t i) {
    int64_t start = 0;
    for (; *name; name++) start += (unsigned char)*name;
    return (double)((start * 7919 + i * 104729) % 2003 - 1001) / 1001;
}

static bool ends_in(const char *name, const char *end) {
    const size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

static void set_weights(struct nb_parameters *p) {
    for (int i = 0; i < p->n; i++) {
        struct nb_parameter *item = &p->items[i];
        const bool gain = ends_in(item->name, "gamma");
        for (int64_t j = 0; j < item->rows * item->cols; j++) {
            const double v = formula(item->name, j);
            item->value[j] = (float)(gain ? 1 + 0.2 * v : item->decays ? 0.4 * v : 0.1 * v);
        }
    }
}

static struct nb_transformer_shape shape_of(const cJSON *recorded) {
    struct nb_transformer_shape shape = nb_test_transformer_shape;
    shape.qk_norm = nb_json_get_bool(recorded, "qk_norm");
    if (strcmp(nb_json_get_text(recorded, "shape"), "base") == 0) {
        shape.kv_heads = shape.heads;
        shape.swiglu = false;
        shape.rope_theta = 0;
    }
    return shape;
}

/* ---- what a case computes: the loss, each gradient and its probe, the loss after each step ---- */

struct trial {
    const cJSON *recorded;
    struct nb_transformer_shape shape;
    struct nb_train_options options;
    char what[96];
};

static struct trial trial_of(const cJSON *recorded, enum nb_style style) {
    const char *norm = nb_json_get_text(recorded, "norm"), *place = nb_json_get_text(recorded, "place");
    struct trial t = {.recorded = recorded, .shape = shape_of(recorded)};
    t.options =
        nb_test_train_options(nb_name_find(nb_norm_kind_names, norm), style, nb_name_find(nb_norm_place_names, place));
    t.options.residual = nb_json_get_bool(recorded, "residual");
    t.options.causal = nb_json_get_bool(recorded, "causal");
    snprintf(t.what, sizeof t.what, "%s %s %s %s", nb_json_get_text(recorded, "shape"), norm, place,
             nb_style_names[style]);
    return t;
}

static void start(struct nb_model *model, struct trial *t) {
    nb_test_transformer(model, &t->shape, &t->options);
    set_weights(&model->parameters);
}

static int64_t size_of(const struct nb_parameter *p) { return p->rows * p->cols; }

static int64_t count_numbers(const struct nb_parameters *p) { return 1 + nb_parameters_count(p) + p->n + STEPS; }

static double *describe(double *out, const struct nb_parameter *p) {
    double probe = 0;
    for (int64_t i = 0; i < size_of(p); i++) {
        *out++ = p->gradient[i];
        probe += p->gradient[i] * formula("probe", i);
    }
    *out++ = probe;
    return out;
}

/* The steps are the model's own, on tokens that are not a text's. */
static double step(struct nb_model *model, const int32_t *tokens, const int32_t *targets) {
    const struct nb_optimizer optimizer = model->workload->family->optimizer(model->workload->own, &model->options);
    nb_parameters_zero_gradients(&model->parameters);
    nb_transformer_loss(model, tokens, targets, true);
    nb_model_backward(model, 1);
    const double norm = nb_parameters_gradient_norm(&model->parameters);
    if (norm > 0.5) nb_parameters_scale_gradients(&model->parameters, (float)(0.5 / (norm + 1e-6)));
    nb_optimizer_update(&optimizer, &model->parameters);
    return nb_transformer_loss(model, tokens, targets, true);
}

static void compute(void *context, double *out) {
    struct trial *t = context;
    struct nb_model model;
    int32_t tokens[MOST_TOKENS], targets[MOST_TOKENS];
    start(&model, t);
    for (int i = 0; i < t->shape.batch * t->shape.sequence; i++) {
        tokens[i] = (7 * i + 3) % t->shape.vocabulary;
        targets[i] = (5 * i + i * i) % t->shape.vocabulary;
    }
    *out++ = nb_transformer_loss(&model, tokens, targets, true);
    nb_model_backward(&model, 1);
    for (int i = 0; i < model.parameters.n; i++) out = describe(out, &model.parameters.items[i]);
    for (int i = 0; i < STEPS; i++) *out++ = step(&model, tokens, targets);
    nb_model_release(&model);
}

/* ---- against what is recorded ---- */

static double length(const double *v, int64_t n) {
    double square = 0;
    for (int64_t i = 0; i < n; i++) square += v[i] * v[i];
    return sqrt(square);
}

static void expect_near(double value, const cJSON *recorded, double deviation, const char *what, const char *name) {
    const double tolerance = NB_TEST_DEVIATIONS * deviation;
    cr_assert(cJSON_IsNumber(recorded), "%s %s is not recorded", what, name);
    cr_assert_float_eq(value, recorded->valuedouble, tolerance, "%s %s: %.9g, recorded %.9g, roundings make +-%.2g",
                       what, name, value, recorded->valuedouble, tolerance);
}

/* An element is compared with the length of the deviation of all of them. */
static void compare_gradient(const struct nb_parameter *p, const double *gradient, const double *deviations,
                             const cJSON *recorded, const char *what) {
    const int64_t n = size_of(p);
    const double size = cJSON_GetObjectItem(recorded, "norm")->valuedouble, deviation = length(deviations, n);
    const cJSON *first = cJSON_GetObjectItem(recorded, "first");
    cr_assert_gt(size, 0);
    cr_assert_lt(NB_TEST_DEVIATIONS * deviation, 1e-3 * size, "%s %s: hidden by roundings", what, p->name);
    expect_near(length(gradient, n), cJSON_GetObjectItem(recorded, "norm"), deviation, what, p->name);
    expect_near(gradient[n], cJSON_GetObjectItem(recorded, "probe"), deviations[n], what, p->name);
    cr_assert_eq(cJSON_GetArraySize(first), n < FIRST ? n : FIRST);
    for (int i = 0; i < FIRST && i < n; i++)
        expect_near(gradient[i], cJSON_GetArrayItem(first, i), deviation, what, p->name);
}

static const cJSON *recorded_gradient(const cJSON *gradients, const char *name) {
    const cJSON *each;
    cJSON_ArrayForEach(each, gradients) if (strcmp(nb_json_get_text(each, "name"), name) == 0) return each;
    return NULL;
}

static void compare_gradients(const struct nb_parameters *p, const double *values, const double *deviations,
                              struct trial *t) {
    const cJSON *gradients = cJSON_GetObjectItem(t->recorded, "gradients");
    cr_assert_eq(cJSON_GetArraySize(gradients), p->n, "%s", t->what);
    for (int i = 0; i < p->n; i++) {
        const struct nb_parameter *item = &p->items[i];
        const cJSON *recorded = recorded_gradient(gradients, item->name);
        cr_assert_not_null(recorded, "%s: %s is not recorded", t->what, item->name);
        compare_gradient(item, values, deviations, recorded, t->what);
        values += size_of(item) + 1;
        deviations += size_of(item) + 1;
    }
}

static void compare_case(const cJSON *recorded, enum nb_style style) {
    struct trial t = trial_of(recorded, style);
    struct nb_model model;
    start(&model, &t);
    const int64_t n = count_numbers(&model.parameters);
    double *values = calloc((size_t)n, sizeof *values), *deviations = calloc((size_t)n, sizeof *deviations);
    compute(&t, values);
    nb_test_products_deviations(compute, &t, n, deviations);
    expect_near(values[0], cJSON_GetObjectItem(recorded, "loss"), deviations[0], t.what, "loss");
    compare_gradients(&model.parameters, values + 1, deviations + 1, &t);
    const cJSON *losses = cJSON_GetObjectItem(recorded, "losses_after_steps");
    for (int i = 0; i < STEPS; i++)
        expect_near(values[n - STEPS + i], cJSON_GetArrayItem(losses, i), deviations[n - STEPS + i], t.what,
                    "loss after steps");
    nb_model_release(&model);
    free(values);
    free(deviations);
}

static cJSON *read_recorded(void) {
    char path[512];
    snprintf(path, sizeof path, "%s/torch_transformer.json", getenv("NORMBENCH_DATA"));
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    char *text = calloc(1, 1 << 20);
    cr_assert_gt(fread(text, 1, (1 << 20) - 1, f), 0);
    fclose(f);
    cJSON *json = cJSON_Parse(text);
    free(text);
    cr_assert_not_null(json, "%s", path);
    return json;
}

Test(train_torch, losses_gradients_and_steps_are_pytorchs) {
    cJSON *recorded = kept_json(read_recorded()), *each;
    cr_assert_geq(cJSON_GetArraySize(cJSON_GetObjectItem(recorded, "cases")), 13);
    int n = 0;
    cJSON_ArrayForEach(each, cJSON_GetObjectItem(recorded, "cases")) {
        if (n++ % sparsely()) continue;
        compare_case(each, NB_FUSED);
        compare_case(each, NB_COMPOSED);
    }
}
