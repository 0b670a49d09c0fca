// SPDX-License-Identifier: Apache-2.0
/* Losses, gradients and clipped AdamW steps of small transformers against PyTorch's in f64, recorded by tests/tools/torch_transformer.py. */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/train/transformer.h"
#include "tests/test_support_train.h"

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

static void expect_near(double value, const cJSON *recorded, double size, const char *what, const char *name) {
    cr_assert(cJSON_IsNumber(recorded), "%s %s is not recorded", what, name);
    cr_assert_float_eq(value, recorded->valuedouble, 3e-5 * size, "%s %s: %.9g, recorded %.9g", what, name, value,
                       recorded->valuedouble);
}

static void compare_gradient(const struct nb_parameter *p, const cJSON *recorded, const char *what) {
    const int64_t n = p->rows * p->cols;
    const double size = cJSON_GetObjectItem(recorded, "norm")->valuedouble;
    const cJSON *first = cJSON_GetObjectItem(recorded, "first");
    double square = 0, probe = 0;
    for (int64_t i = 0; i < n; i++) {
        square += (double)p->gradient[i] * (double)p->gradient[i];
        probe += p->gradient[i] * formula("probe", i);
    }
    cr_assert_gt(size, 0);
    expect_near(sqrt(square), cJSON_GetObjectItem(recorded, "norm"), size, what, p->name);
    expect_near(probe, cJSON_GetObjectItem(recorded, "probe"), 5 * size, what, p->name);
    cr_assert_eq(cJSON_GetArraySize(first), n < FIRST ? n : FIRST);
    for (int i = 0; i < FIRST && i < n; i++)
        expect_near(p->gradient[i], cJSON_GetArrayItem(first, i), size, what, p->name);
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

/* The steps are the model's own, on tokens that are not a text's. */
static double step(struct nb_model *model, const int32_t *tokens, const int32_t *targets) {
    const struct nb_optimizer optimizer = model->workload->optimizer(model->workload->own, &model->options);
    nb_parameters_zero_gradients(&model->parameters);
    nb_transformer_loss(model, tokens, targets, true);
    nb_model_backward(model, 1);
    const double norm = nb_parameters_gradient_norm(&model->parameters);
    if (norm > 0.5) nb_parameters_scale_gradients(&model->parameters, (float)(0.5 / (norm + 1e-6)));
    nb_optimizer_update(&optimizer, &model->parameters);
    return nb_transformer_loss(model, tokens, targets, true);
}

static void compare_case(const cJSON *recorded, enum nb_style style) {
    char what[96];
    struct nb_model model;
    int32_t tokens[MOST_TOKENS], targets[MOST_TOKENS];
    const struct nb_transformer_shape shape = shape_of(recorded);
    const char *norm = nb_json_get_text(recorded, "norm"), *place = nb_json_get_text(recorded, "place");
    struct nb_train_options o = nb_test_train_options(nb_norm_kind_find(norm), style, nb_norm_place_find(place));
    o.residual = nb_json_get_bool(recorded, "residual");
    o.causal = nb_json_get_bool(recorded, "causal");
    snprintf(what, sizeof what, "%s %s %s", nb_json_get_text(recorded, "shape"), norm, place);
    nb_test_transformer(&model, &shape, &o);
    set_weights(&model.parameters);
    for (int i = 0; i < shape.batch * shape.sequence; i++) {
        tokens[i] = (7 * i + 3) % shape.vocabulary;
        targets[i] = (5 * i + i * i) % shape.vocabulary;
    }
    expect_near(nb_transformer_loss(&model, tokens, targets, true), cJSON_GetObjectItem(recorded, "loss"), 1, what,
                "loss");
    nb_model_backward(&model, 1);
    const cJSON *gradients = cJSON_GetObjectItem(recorded, "gradients"), *each;
    cr_assert_eq(cJSON_GetArraySize(gradients), model.parameters.n, "%s", what);
    cJSON_ArrayForEach(each, gradients) {
        const struct nb_parameter *p = nb_parameter_find(&model.parameters, nb_json_get_text(each, "name"));
        cr_assert_not_null(p, "%s: no parameter %s", what, nb_json_get_text(each, "name"));
        compare_gradient(p, each, what);
    }
    const cJSON *losses = cJSON_GetObjectItem(recorded, "losses_after_steps");
    for (int i = 0; i < STEPS; i++)
        expect_near(step(&model, tokens, targets), cJSON_GetArrayItem(losses, i), 3, what, "loss after steps");
    nb_model_release(&model);
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
    cJSON *recorded = read_recorded(), *each;
    cr_assert_geq(cJSON_GetArraySize(cJSON_GetObjectItem(recorded, "cases")), 13);
    cJSON_ArrayForEach(each, cJSON_GetObjectItem(recorded, "cases")) {
        compare_case(each, NB_FUSED);
        compare_case(each, NB_COMPOSED);
    }
    cJSON_Delete(recorded);
}
