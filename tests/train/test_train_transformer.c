// SPDX-License-Identifier: Apache-2.0
/* The whole gradient of a small transformer against central differences, with every norm, style and place; sizes of the published ones. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/names.h"
#include "src/core/random.h"
#include "src/train/transformer.h"
#include "src/train/workload.h"
#include "tests/support/products.h"
#include "tests/support/train.h"

static double model_loss(void *context) {
    const struct nb_text text = nb_test_text();
    return nb_model_forward(context, &text, 3, true);
}

/* Along the gradient, and along a random half of its elements, which an error across the gradient changes. */
static void check_parameter(const char *arm, const struct nb_test_loss *loss, struct nb_parameter *p) {
    const int64_t n = p->rows * p->cols;
    double *u = malloc((size_t)n * sizeof *u);
    for (int half = 0; half < 2; half++) {
        char what[160];
        double length = 0;
        for (int64_t i = 0; i < n; i++) {
            u[i] = half && nb_random_bits(nb_random_stream(3, 3), (uint64_t)i) >> 63 ? 0 : p->gradient[i];
            length += u[i] * u[i];
        }
        if (length == 0) continue; /* an embedding row whose token is not there */
        for (int64_t i = 0; i < n; i++) u[i] /= sqrt(length);
        snprintf(what, sizeof what, "%s: %s%s", arm, p->name, half ? ", half of it" : "");
        nb_test_direction(what, loss, p->value, p->gradient, u, n, 0x1p-7);
    }
    free(u);
}

static void check_model(const struct nb_transformer_shape *shape, const struct nb_train_options *options) {
    struct nb_model model;
    char arm[96];
    nb_test_transformer(&model, shape, options);
    snprintf(arm, sizeof arm, "%s %s %s%s%s", nb_norm_kind_names[options->norm.kind],
             nb_style_names[options->norm.style], nb_norm_place_names[options->place],
             options->residual ? "" : " plain", options->causal ? "" : " open");
    for (int i = 0; i < model.parameters.n; i++) /* gains and biases away from 1 and 0 */
        for (int64_t j = 0;
             !model.parameters.items[i].decays && j < model.parameters.items[i].rows * model.parameters.items[i].cols;
             j++)
            model.parameters.items[i].value[j] += 0.05f * (float)(j % 5);
    model_loss(&model);
    nb_model_backward(&model, 1);
    const struct nb_test_loss loss = {model_loss, &model, nb_test_products_noise(model_loss, &model)};
    for (int i = 0; i < model.parameters.n; i++) check_parameter(arm, &loss, &model.parameters.items[i]);
    nb_model_release(&model);
}

Test(train_transformer, gradients_with_every_norm_style_and_place) {
    for (int kind = 0; kind < NB_N_NORM_KINDS; kind++)
        for (int style = 0; style < NB_N_STYLES; style++)
            for (int place = 0; place < NB_N_NORM_PLACES; place++) {
                struct nb_train_options o = nb_test_train_options(kind, style, place);
                o.causal = (kind + style) % 2 == 0;
                check_model(&nb_test_transformer_shape, &o);
            }
}

Test(train_transformer, gradients_without_residual_paths) {
    static const enum nb_norm_kind kinds[] = {NB_NORM_NONE, NB_NORM_RMSNORM, NB_NORM_LAYERNORM};
    for (int kind = 0; kind < 3; kind++)
        for (int place = 0; place < NB_N_NORM_PLACES; place++) {
            struct nb_train_options o = nb_test_train_options(kinds[kind], NB_FUSED, place);
            o.residual = false;
            check_model(&nb_test_transformer_shape, &o);
        }
}

Test(train_transformer, gradients_with_qk_norm_and_with_sinusoids) {
    struct nb_transformer_shape qk = nb_test_transformer_shape, base = nb_test_transformer_shape;
    qk.qk_norm = true; /* ReLU has corners, where differences tell nothing: test_train_torch.c has it */
    base.rope_theta = 0;
    base.deviation = 0;
    for (int kind = 0; kind < 3; kind++) {
        struct nb_train_options o = nb_test_train_options(kind, NB_FUSED, NB_PRE_NORM);
        check_model(&qk, &o);
        o.place = NB_POST_NORM;
        o.causal = false;
        check_model(&base, &o);
    }
}

/* With norms, whose gradients are of one size throughout: without them differences are too rough to tell. The encoder's gradient comes
 * through the decoder's attention to it, from every layer. */
Test(train_transformer, gradients_of_an_encoder_and_a_decoder) {
    struct nb_transformer_shape shape = nb_test_transformer_shape;
    shape.decoder = true;
    for (int kind = NB_NORM_LAYERNORM; kind <= NB_NORM_PRMSNORM; kind++) {
        struct nb_train_options o = nb_test_train_options(kind, NB_FUSED, NB_POST_NORM);
        check_model(&shape, &o);
        o.residual = false;
        check_model(&shape, &o);
    }
}

/* The decoder sees the encoder's text and its own past: its future and nothing else is hidden. */
Test(train_transformer, a_decoder_sees_the_text_and_its_own_past) {
    struct nb_transformer_shape shape = nb_test_transformer_shape;
    static int32_t tokens[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const int32_t first_alone[12] = {2, -1, -1, -1, -1, -1, 8, -1, -1, -1, -1, -1};
    const struct nb_train_options o = nb_test_train_options(NB_NORM_RMSNORM, NB_FUSED, NB_POST_NORM);
    struct nb_model model;
    shape.decoder = true;
    nb_test_transformer(&model, &shape, &o);
    cr_assert_eq(model.options.batch * model.options.sequence, 12);
    tokens[5] = 6;
    const double before = nb_transformer_loss(&model, tokens, first_alone, true);
    tokens[5] = 20; /* last of the first sequence: the encoder reads it before the decoder begins */
    cr_expect_neq(nb_transformer_loss(&model, tokens, first_alone, true), before);
    nb_model_release(&model);
}

/* ---- what is published ---- */

/* hidden 0: the workload's own */
static int64_t count_parameters(const struct nb_workload *workload, enum nb_norm_kind kind, int hidden, int *n_norms) {
    struct nb_model model;
    const struct nb_transformer_shape *shape = workload->own;
    struct nb_train_options o = nb_test_train_options(kind, NB_FUSED, shape->decoder ? NB_POST_NORM : NB_PRE_NORM);
    o.batch = 1;
    o.sequence = 4;
    o.hidden = hidden;
    nb_test_load_kernels();
    cr_assert_eq(nb_model_init(&model, workload, &o), 0);
    const int64_t n = nb_parameters_count(&model.parameters);
    *n_norms = 0;
    for (int i = 0; i < model.parameters.n; i++) *n_norms += strstr(model.parameters.items[i].name, ".gamma") != NULL;
    nb_model_release(&model);
    return n;
}

Test(train_transformer, sizes_are_the_published_ones) {
    int n_norms;
    cr_assert_eq(count_parameters(&nb_workload_minimind2_small, NB_NORM_RMSNORM, 0, &n_norms), 25829888);
    cr_assert_eq(n_norms, 17);
    cr_assert_eq(count_parameters(&nb_workload_minimind_3, NB_NORM_RMSNORM, 0, &n_norms), 63912192);
    cr_assert_eq(n_norms, 17 + 16);
    count_parameters(&nb_workload_transformer_base, NB_NORM_LAYERNORM, 64, &n_norms);
    cr_assert_eq(n_norms, 6 * 2 + 6 * 3);
}

Test(train_transformer, a_mask_hides_the_future) {
    struct nb_train_options o = nb_test_train_options(NB_NORM_RMSNORM, NB_FUSED, NB_PRE_NORM);
    for (int causal = 0; causal < 2; causal++) {
        static int32_t tokens[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
        static const int32_t targets[12] = {2, 3, 4,  -1, -1, -1,
                                            8, 9, 10, -1, -1, -1}; /* the first half of each alone */
        struct nb_model model;
        o.causal = causal;
        nb_test_transformer(&model, &nb_test_transformer_shape, &o);
        tokens[5] = 6;
        const double before = nb_transformer_loss(&model, tokens, targets, true);
        tokens[5] = 20;
        const double after = nb_transformer_loss(&model, tokens, targets, true);
        cr_assert_eq(before == after, causal, "%.9g and %.9g", before, after);
        nb_model_release(&model);
    }
}

/* ---- observers ---- */

struct seen {
    int activations, gradients;
    double input_rms;
    char last[96];
};
static double rms(const float *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)v[i] * (double)v[i];
    return sqrt(sum / (double)n);
}
static void see(void *context, enum nb_observed what, const char *place, const float *values, int64_t n) {
    struct seen *s = context;
    s->activations += what == NB_ACTIVATION;
    s->gradients += what == NB_GRADIENT && n > 0 && values != NULL;
    if (what == NB_ACTIVATION && strcmp(place, "layer1.feed_forward.input") == 0) s->input_rms = rms(values, n);
    snprintf(s->last, sizeof s->last, "%s", place);
}
Test(train_transformer, observers_see_streams_and_inputs_apart) {
    for (int place = 0; place < NB_N_NORM_PLACES; place++) {
        struct seen seen = {0};
        const struct nb_observer observer = {see, &seen};
        const struct nb_text text = nb_test_text();
        struct nb_model model;
        const struct nb_train_options o = nb_test_train_options(NB_NORM_RMSNORM, NB_FUSED, place);
        nb_test_transformer(&model, &nb_test_transformer_shape, &o);
        model.observer = &observer;
        nb_model_forward(&model, &text, 0, true);
        cr_assert_eq(seen.activations, 1 + 2 * 2 * 3 + 2);
        cr_assert_str_eq(seen.last, "logits");
        cr_assert_float_eq(seen.input_rms, 1, 1e-3, "normalized before the sublayer or after the one before it");
        nb_model_backward(&model, 1);
        cr_assert_eq(seen.gradients, seen.activations);
        cr_assert_str_eq(seen.last, "embedding");
        cr_assert_eq(model.norm_calls, place == NB_PRE_NORM ? 10 : 8);
        cr_assert_gt(model.norm_seconds[NB_FORWARD], 0);
        cr_assert_gt(model.activation_bytes, 0);
        nb_model_release(&model);
    }
}
