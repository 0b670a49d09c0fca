// SPDX-License-Identifier: Apache-2.0
/* The layers of the recurrent workloads alone: gradients by their input and their first state too, both directions of time; the formulas
 * of a step; the functions that they are made of. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/core/random.h"
#include "src/train/data.h"
#include "src/train/layers.h"
#include "src/train/order_embedding.c"
#include "src/train/recurrent.h"
#include "src/train/tensor.h"
#include "tests/support/training.h"

enum { STEPS = 3, BATCH = 2, IN = 6, HIDDEN = 16, STATE = BATCH * HIDDEN, ALL = STEPS * STATE };

/* A model of one layer: its input and its first state are parameters, its loss is a weighted sum of the states. */
struct layer {
    struct nb_gru gru;
    struct nb_lstm lstm;
    struct nb_parameter *x, *start;
    float weights[ALL], states[ALL + STATE], dstates[ALL + STATE], dx[STEPS * BATCH * IN];
};
/* options.layers says which one: 1 GRU, 2 LSTM; options.causal the direction: true forwards. */
static bool is_lstm(const struct nb_model *model) { return model->options.layers == 2; }
static float *first_state(const struct nb_model *model, float *states) {
    return states + (model->options.causal ? 0 : ALL);
}
static float *outputs(const struct nb_model *model, float *states) {
    return states + (model->options.causal ? STATE : 0);
}

static const char *complete(const void *own, struct nb_train_options *o) {
    (void)own;
    o->norm.eps = 1e-5;
    o->norm.partial = 0.25;
    return NULL;
}

static void create(struct nb_model *model) {
    struct layer *l = nb_arena_take_bytes(&model->passing, sizeof *l);
    const struct nb_recurrent_shape shape = {STEPS,
                                             BATCH,
                                             IN,
                                             HIDDEN,
                                             .backwards = !model->options.causal,
                                             .input_by_step = !is_lstm(model) && model->options.residual};
    model->inside = l;
    l->x = nb_parameter_matrix(&model->parameters, "x", "", STEPS * BATCH, IN, model->options.seed, 1);
    l->start = nb_parameter_matrix(&model->parameters, "start", "", BATCH, HIDDEN, model->options.seed, 1);
    for (int64_t i = 0; i < ALL; i++) l->weights[i] = (float)nb_random_normal(nb_random_stream(5, 5), (uint64_t)i) / 4;
    if (is_lstm(model))
        nb_lstm_init(&l->lstm, model, "layer", "", &shape);
    else
        nb_gru_init(&l->gru, model, "layer", "", &shape);
    cr_assert_eq(nb_recurrent_outputs(&shape, l->states), outputs(model, l->states));
}

static double forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training) {
    struct layer *l = model->inside;
    double sum = 0;
    (void)text, (void)batch, (void)training;
    memcpy(first_state(model, l->states), l->start->value, STATE * sizeof(float));
    if (is_lstm(model))
        nb_lstm_forward(&l->lstm, l->states, l->x->value);
    else
        nb_gru_forward(&l->gru, l->states, l->x->value);
    for (int64_t i = 0; i < ALL; i++) sum += (double)l->weights[i] * (double)outputs(model, l->states)[i];
    return sum;
}

static void backward(struct nb_model *model, double scale) {
    struct layer *l = model->inside;
    memset(l->dstates, 0, sizeof l->dstates);
    for (int64_t i = 0; i < ALL; i++) outputs(model, l->dstates)[i] = l->weights[i] * (float)scale;
    if (is_lstm(model))
        nb_lstm_backward(&l->lstm, l->dx, l->dstates, l->states, l->x->value);
    else
        nb_gru_backward(&l->gru, l->dx, l->dstates, l->states, l->x->value);
    memcpy(l->x->gradient, l->dx, sizeof l->dx);
    memcpy(l->start->gradient, first_state(model, l->dstates), STATE * sizeof(float));
}

static const struct nb_model_family layers = {
    .complete = complete, .create = create, .forward = forward, .backward = backward};
static const struct nb_workload workload = {.name = "layer", .family = &layers};

static void check_layers(int which) {
    for (int kind = 0; kind < NB_N_NORM_KINDS; kind++)
        for (int style = 0; style < NB_N_STYLES; style++)
            for (int backwards = 0; backwards < 2; backwards++) {
                struct nb_train_options options = arm_of(kind, style);
                struct nb_model model;
                char what[64];
                if (kind == NB_NORM_BATCHNORM) continue;
                options.layers = which;
                options.causal = !backwards;
                options.residual = style == NB_FUSED; /* norms of the input step by step */
                start_model(&model, &workload, &options);
                snprintf(what, sizeof what, "%s %d %s", nb_norm_kind_names[kind], style, backwards ? "back" : "forth");
                assert_gradients(&model, NULL, what);
                nb_model_release(&model);
            }
}

Test(train_gated, gru_by_input_first_state_and_weights) { check_layers(1); }
Test(train_gated, lstm_by_input_first_state_and_weights) { check_layers(2); }

/* ---- formulas, by hand and in double ---- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
/* Adds to `reach` what the product may be off by in f32, summed in any order. */
static double product(const struct nb_parameters *all, const char *name, int64_t row, const float *x, double *reach) {
    const struct nb_parameter *p = nb_parameter_find(all, name);
    double sum = 0, size = 0;
    for (int64_t i = 0; i < p->cols; i++) {
        const double term = (double)p->value[row * p->cols + i] * (double)x[i];
        sum += term;
        size += fabs(term);
    }
    *reach += (double)p->cols * 0x1p-24 * size;
    return sum;
}

Test(train_gated, a_step_is_the_published_one) {
    for (int which = 1; which <= 2; which++) {
        struct nb_train_options options = arm_of(NB_NORM_NONE, NB_FUSED);
        struct nb_model model;
        options.layers = which;
        start_model(&model, &workload, &options);
        forward(&model, NULL, 0, true);
        const struct layer *l = model.inside;
        const struct nb_parameters *p = &model.parameters;
        const float *x = l->x->value, *h = l->start->value, *next = l->states + STATE;
        for (int64_t i = 0; i < HIDDEN; i++) { /* the first sample's first step */
            /* Every function's slope is at most 1 and every factor at most 1 or the state: errors only add up. The functions are right to
             * four ulp (below), and there are five of them at most. */
            double expected, gate[4], reach = 20 * 0x1p-23;
            if (which == 1) {
                for (int k = 0; k < 2; k++)
                    gate[k] = sigmoid(product(p, "layer.x_gates.weight", k * HIDDEN + i, x, &reach) +
                                      product(p, "layer.h_gates.weight", k * HIDDEN + i, h, &reach));
                const double c = tanh(product(p, "layer.x_candidate.weight", i, x, &reach) +
                                      gate[0] * product(p, "layer.h_candidate.weight", i, h, &reach));
                expected = gate[1] * (double)h[i] + (1 - gate[1]) * c;
            } else {
                for (int k = 0; k < 4; k++)
                    gate[k] = product(p, "layer.x.weight", k * HIDDEN + i, x, &reach) +
                              product(p, "layer.h.weight", k * HIDDEN + i, h, &reach);
                expected = sigmoid(gate[2]) * tanh(sigmoid(gate[0]) * tanh(gate[3])); /* the first cell is 0 */
            }
            cr_expect_float_eq(next[i], expected, reach, "%d, %lld: %g, not %g", which, (long long)i, next[i],
                               expected);
        }
        nb_model_release(&model);
    }
}

Test(train_gated, sigmoid_and_tanh_are_right_to_four_ulp) {
    for (double at = -80; at < 80; at += 0.0037) {
        float s[5] = {(float)at, 0, 1, 2, (float)at}, t[5] = {(float)at, 0, 1, 2, (float)at};
        nb_sigmoid_tensor(s, 5);
        nb_tanh_tensor(t, 5);
        const double x = (float)at, exact_s = sigmoid(x), exact_t = tanh(x);
        cr_assert(fabs(s[0] - exact_s) <= 4 * 0x1p-23 * exact_s, "sigmoid(%g) = %g", x, s[0]);
        cr_assert(fabs(t[0] - exact_t) <= 4 * 0x1p-23 * fabs(exact_t), "tanh(%g) = %g", x, t[0]);
        cr_assert(s[0] == s[4] && t[0] == t[4], "the place of an element does not count");
    }
    float ends[5] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
    nb_tanh_tensor(ends, 5);
    cr_expect(isnan(ends[0]) && ends[1] == 1 && ends[2] == -1 && ends[3] == 1 && ends[4] == -1);
}

/* ---- data and loss ---- */

Test(train_gated, order_loss_of_two_pairs) {
    /* Captions (1,0,..) and (0,1,0,..), images the same: no violation of their own, 1 of the other's: both hinges are shut. With images
     * exchanged each pair has E = 1 and the others 0: four hinges of 0.05 + 1, two pairs. */
    float vectors[2][8] = {{1}, {0, -2}}, turned[2][8] = {{0, 3}, {1}};
    struct nb_arena arena = {0};
    struct order_loss loss;
    order_loss_init(&loss, &arena, &arena, 2, 8, 0.05);
    cr_expect_float_eq(order_loss_forward(&loss, vectors[0], vectors[0]), 0, 1e-6);
    cr_expect_float_eq(order_loss_forward(&loss, vectors[0], turned[0]), 2 * 1.05, 1e-6);
    vectors[0][3] = NAN;
    cr_expect(isnan(order_loss_forward(&loss, vectors[0], turned[0])));
    nb_arena_release(&arena);
}

Test(train_gated, questions_ask_for_an_entity_of_the_document) {
    const struct nb_text text = plain_text();
    const struct nb_cloze_shape shape = {.document = 40, .query = 6, .entities = 12, .vocabulary = 200};
    struct nb_arena arena = {0};
    struct nb_cloze cloze;
    int32_t document[40], query[6];
    int n_answers = 0;
    nb_cloze_init(&cloze, &arena, &shape);
    for (uint64_t i = 0; i < 50; i++) {
        const int32_t answer = nb_cloze_ask(&cloze, &text, i, document, query, 1);
        int asked = 0, found = 0;
        for (int t = 0; t < 40; t++) {
            cr_assert(document[t] >= 0 && document[t] < shape.vocabulary && document[t] != shape.entities);
            found += document[t] == answer;
        }
        for (int t = 0; t < 6; t++) asked += query[t] == shape.entities;
        cr_expect_eq(asked, 1);
        cr_expect(answer < 0 ? found == 0 : found > 0 && answer < shape.entities);
        n_answers += answer >= 0;
    }
    cr_expect_gt(n_answers, 40);
    nb_arena_release(&arena);
}

Test(train_gated, words_are_found_in_any_bytes) {
    unsigned char bytes[] = "One, tWo-one";
    const struct nb_text text = {.bytes = bytes, .n = sizeof bytes - 1};
    size_t at = 0;
    const struct nb_word one = nb_words_next(&text, &at), two = nb_words_next(&text, &at),
                         again = nb_words_next(&text, &at);
    cr_expect(one.hash == again.hash && one.hash != two.hash && one.n_bytes == 3);
    unsigned char blanks[] = "  ..";
    const struct nb_text none = {.bytes = blanks, .n = sizeof blanks - 1};
    at = 0;
    for (int i = 0; i < 10; i++) cr_expect_eq(nb_words_next(&none, &at).n_bytes, 1);
    unsigned char letters[] = "abc";
    const struct nb_text endless = {.bytes = letters, .n = sizeof letters - 1};
    at = 1;
    cr_expect(nb_words_next(&endless, &at).n_bytes == 2 && nb_words_next(&endless, &at).n_bytes == 3);
}
