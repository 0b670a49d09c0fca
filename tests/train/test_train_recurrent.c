// SPDX-License-Identifier: Apache-2.0
/* The recurrent workloads at their tiny widths: gradients, learning, repeatability, what they refuse and what they tell. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/core/timer.h"
#include "src/measure/fp_state.h"
#include "tests/support/products.h"
#include "tests/support/training.h"

static const char *const tiny[] = {"tiny-rnnsearch", "tiny-order-embedding", "tiny-attentive-reader"};
enum { N_TINY = sizeof tiny / sizeof tiny[0] };
static const enum nb_norm_kind kinds[] = {NB_NORM_NONE,     NB_NORM_LAYERNORM, NB_NORM_RMSNORM,
                                          NB_NORM_PRMSNORM, NB_NORM_CENTRE,    NB_NORM_SCALE};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static void assert_all_gradients(const char *workload, enum nb_style style) {
    const struct nb_text text = plain_text();
    for (int k = 0; k < N_KINDS; k++) {
        struct nb_train_options options = arm_of(kinds[k], style);
        options.norm.partial = 0.25; /* of 16 elements a few */
        struct nb_model model;
        make_model(&model, workload, &options);
        char what[96];
        snprintf(what, sizeof what, "%s, %s", workload, nb_norm_kind_names[kinds[k]]);
        assert_gradients(&model, &text, what);
        nb_model_release(&model);
    }
}

Test(train_recurrent, rnnsearch_has_the_gradients_of_its_loss) {
    assert_all_gradients("tiny-rnnsearch", NB_FUSED);
    assert_all_gradients("tiny-rnnsearch", NB_COMPOSED);
}
Test(train_recurrent, order_embedding_has_the_gradients_of_its_loss) {
    assert_all_gradients("tiny-order-embedding", NB_FUSED);
    assert_all_gradients("tiny-order-embedding", NB_COMPOSED);
}
Test(train_recurrent, attentive_reader_has_the_gradients_of_its_loss) {
    assert_all_gradients("tiny-attentive-reader", NB_FUSED);
    assert_all_gradients("tiny-attentive-reader", NB_COMPOSED);
}

/* ---- learning ---- */

enum { N_BATCHES = 4 };

static double mean_loss(struct nb_model *model, const struct nb_text *text) {
    double sum = 0;
    for (int64_t i = 0; i < N_BATCHES; i++) sum += nb_model_forward(model, text, i, true);
    return sum / N_BATCHES;
}

/* Four batches over and over: with ever new ones a few dozen samples would tell more of the text than of the model. */
static void assert_learns(const char *workload, const struct nb_train_options *options, const char *what) {
    const struct nb_text text = plain_text();
    struct nb_model model;
    make_model(&model, workload, options);
    const double before = mean_loss(&model, &text);
    for (int i = 0; i < 40; i++) nb_model_step(&model, &text, i % N_BATCHES);
    const double after = mean_loss(&model, &text);
    cr_expect(after < 0.9 * before, "%s, %s: %g, then %g", workload, what, before, after);
    nb_model_release(&model);
}

Test(train_recurrent, the_loss_falls_in_forty_steps) {
    for (int w = 0; w < N_TINY; w++)
        for (int k = 0; k < N_KINDS; k++) {
            const struct nb_train_options options = arm_of(kinds[k], NB_FUSED);
            assert_learns(tiny[w], &options, nb_norm_kind_names[kinds[k]]);
        }
}

/* Values of all parameters after some steps. */
static double sum_of_values(const char *workload, const struct nb_train_options *options, int n_steps) {
    const struct nb_text text = plain_text();
    struct nb_model model;
    double sum = 0;
    make_model(&model, workload, options);
    for (int i = 0; i < n_steps; i++) nb_model_step(&model, &text, i);
    for (int i = 0; i < model.parameters.n; i++)
        for (int64_t j = 0; j < model.parameters.items[i].rows * model.parameters.items[i].cols; j++)
            sum += (double)model.parameters.items[i].value[j] * (double)(1 + (i + j) % 7);
    nb_model_release(&model);
    return sum;
}

Test(train_recurrent, the_same_seed_gives_the_same_bits_and_another_one_does_not) {
    for (int w = 0; w < N_TINY; w++) {
        struct nb_train_options options = arm_of(NB_NORM_LAYERNORM, NB_COMPOSED);
        const double once = sum_of_values(tiny[w], &options, 3), again = sum_of_values(tiny[w], &options, 3);
        options.seed++;
        const double other = sum_of_values(tiny[w], &options, 3);
        cr_expect_eq(once, again, "%s: %.17g, then %.17g", tiny[w], once, again);
        cr_expect_neq(once, other, "%s", tiny[w]);
    }
}

Test(train_recurrent, arms_share_first_values_and_batches) {
    for (int w = 0; w < N_TINY; w++) {
        const struct nb_train_options plain = arm_of(NB_NORM_NONE, NB_FUSED),
                                      normed = arm_of(NB_NORM_LAYERNORM, NB_FUSED);
        struct nb_model a, b;
        make_model(&a, tiny[w], &plain);
        make_model(&b, tiny[w], &normed);
        for (int i = 0; i < a.parameters.n; i++) {
            const struct nb_parameter *p = &a.parameters.items[i], *q = nb_parameter_find(&b.parameters, p->name);
            cr_assert_not_null(q, "%s", p->name);
            cr_expect_eq(memcmp(p->value, q->value, (size_t)(p->rows * p->cols) * sizeof *p->value), 0, "%s", p->name);
        }
        cr_expect_gt(b.activation_bytes, a.activation_bytes);
        nb_model_release(&a);
        nb_model_release(&b);
    }
}

static double second_loss(void *model) {
    const struct nb_text text = plain_text();
    return nb_model_forward(model, &text, 1, true);
}

Test(train_recurrent, fused_and_composed_norms_agree) {
    for (int w = 0; w < N_TINY; w++) {
        double loss[2], deviation = 0;
        for (int style = 0; style < 2; style++) {
            const struct nb_train_options options = arm_of(NB_NORM_RMSNORM, style ? NB_COMPOSED : NB_FUSED);
            struct nb_model model;
            make_model(&model, tiny[w], &options);
            loss[style] = second_loss(&model);
            deviation = nb_test_products_noise(second_loss, &model);
            nb_model_release(&model);
        }
        cr_expect_float_eq(loss[0], loss[1], NB_TEST_DEVIATIONS * deviation, "%s: %g and %g", tiny[w], loss[0],
                           loss[1]);
    }
}

Test(train_recurrent, half_precision_rounds_and_learns) {
    const struct nb_text text = plain_text();
    for (int w = 0; w < N_TINY; w++)
        for (enum nb_dtype dtype = NB_F16; dtype <= NB_BF16; dtype++) {
            struct nb_train_options options = arm_of(NB_NORM_RMSNORM, NB_FUSED);
            double loss[2];
            for (int half = 0; half < 2; half++) {
                struct nb_model model;
                options.dtype = half ? dtype : NB_F32;
                make_model(&model, tiny[w], &options);
                loss[half] = mean_loss(&model, &text);
                nb_model_release(&model);
            }
            cr_expect(loss[0] != loss[1] && fabs(loss[0] - loss[1]) < 0.02 * loss[0], "%s: %g, %g", tiny[w], loss[0],
                      loss[1]);
            assert_learns(tiny[w], &options, dtype == NB_F16 ? "f16" : "bf16");
        }
}

/* ---- what they say of themselves ---- */

Test(train_recurrent, norm_calls_are_those_of_the_published_code) {
    const struct nb_text text = plain_text();
    /* Steps T: forward and backward each. RNNSearch: two encoders and the first decoder unit 2 T + 2, the second one, whose input comes step
     * by step, 4 T, attention T + 1, start 1, readout 3. Order embedding 4 T. Reader: 3 T in four LSTMs, documents 16, queries 4. */
    const int64_t calls[N_TINY] = {2 * (3 * (2 * 5 + 2) + 4 * 5 + 5 + 1 + 1 + 3), 2 * 4 * 5, 2 * 3 * 2 * (16 + 4)};
    for (int w = 0; w < N_TINY; w++) {
        const struct nb_train_options options = arm_of(NB_NORM_LAYERNORM, NB_COMPOSED);
        struct nb_model model;
        make_model(&model, tiny[w], &options);
        nb_model_step(&model, &text, 0);
        cr_expect_eq(model.norm_calls, calls[w], "%s: %lld calls", tiny[w], (long long)model.norm_calls);
        cr_expect_gt(model.norm_seconds[NB_FORWARD], 0);
        nb_model_release(&model);
    }
}

/* An operation costs its dispatch besides its work, in the norms and elsewhere, and changes no result. */
Test(train_recurrent, dispatch_is_spent_on_every_operation) {
    const struct nb_text text = plain_text();
    double loss[2], norm_ops[2];
    for (int i = 0; i < 2; i++) {
        struct nb_train_options options = arm_of(i ? NB_NORM_LAYERNORM : NB_NORM_RMSNORM, NB_COMPOSED);
        struct nb_model model;
        for (int waits = 0; waits < 2; waits++) {
            options.dispatch = waits ? 30 : 0;
            make_model(&model, tiny[0], &options);
            const double start = nb_now_s();
            loss[waits] = nb_model_step(&model, &text, 0);
            const double seconds = nb_now_s() - start, spent = 30e-6 * (double)waits;
            norm_ops[i] = (double)(model.norm_ops[NB_FORWARD] + model.norm_ops[NB_BACKWARD]);
            cr_expect_gt((double)nb_train_work.ops, norm_ops[i]);
            cr_expect_geq(seconds, spent * (double)nb_train_work.ops);
            cr_expect_geq(model.norm_seconds[NB_FORWARD] + model.norm_seconds[NB_BACKWARD], spent * norm_ops[i]);
            nb_model_release(&model);
        }
        cr_expect_eq(loss[0], loss[1]);
    }
    cr_expect_gt(norm_ops[1], norm_ops[0], "LayerNorm takes more operations than RMSNorm");
}

/* Adam's second moments of gradients whose squares are subnormal: 0 in an arm that is flushed, where the CPU can. */
Test(train_recurrent, subnormal_numbers_are_flushed_where_an_arm_says_so) {
    const struct nb_text text = plain_text();
    for (int flushed = 0; flushed < 2; flushed++) {
        struct nb_train_options options = arm_of(NB_NORM_LAYERNORM, NB_COMPOSED);
        struct nb_model model;
        int64_t subnormal = 0;
        options.flushed = flushed;
        options.clip = 1e-18; /* gradients about 1e-20 */
        make_model(&model, tiny[0], &options);
        nb_model_step(&model, &text, 0);
        for (int p = 0; p < model.parameters.n; p++)
            for (int64_t i = 0; i < model.parameters.items[p].rows * model.parameters.items[p].cols; i++)
                subnormal += fpclassify(model.parameters.items[p].second[i]) == FP_SUBNORMAL;
        if (!flushed) cr_expect_gt(subnormal, 0);
        if (flushed && NB_FP_FLUSHES != 0) cr_expect_eq(subnormal, 0);
        nb_model_release(&model);
    }
}

struct seen {
    const char *place;
    int64_t activations, gradients;
    double rms;
};
static void see(void *context, enum nb_observed what, const char *place, const float *values, int64_t n) {
    struct seen *seen = context;
    if (strcmp(place, seen->place) != 0) return;
    if (what == NB_GRADIENT) {
        seen->gradients += values ? n : 0;
        return;
    }
    seen->activations += n;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)values[i] * (double)values[i];
    seen->rms = sqrt(sum / (double)n);
}

Test(train_recurrent, observers_see_hidden_to_hidden_products) {
    static const char *const places[N_TINY] = {"decoder.first.h_candidate.result", "caption.h_gates.result",
                                               "document.backwards.h.result"};
    static const int64_t sizes[N_TINY] = {5 * 4 * 16, 5 * 4 * 32, 16 * 4 * 64};
    const struct nb_text text = plain_text();
    for (int w = 0; w < N_TINY; w++) {
        struct seen seen = {.place = places[w]};
        const struct nb_observer observer = {see, &seen};
        const struct nb_train_options options = arm_of(NB_NORM_RMSNORM, NB_FUSED);
        struct nb_model model;
        make_model(&model, tiny[w], &options);
        model.observer = &observer;
        nb_model_step(&model, &text, 0);
        cr_expect_eq(seen.activations, sizes[w], "%s", places[w]);
        cr_expect_eq(seen.gradients, sizes[w], "%s", places[w]);
        /* 1 by RMSNorm, but for the first step of a layer that begins with a state of 0 */
        cr_expect(seen.rms > 0.85 && seen.rms <= 1.0001, "%s: %g", places[w], seen.rms);
        nb_model_release(&model);
    }
}

Test(train_recurrent, what_cannot_be_done_is_refused) {
    for (int w = 0; w < N_TINY; w++) {
        const struct nb_workload *workload = nb_workload_find(tiny[w]);
        for (int what = 0; what < 8; what++) {
            struct nb_train_options options = arm_of(NB_NORM_RMSNORM, NB_FUSED);
            if (what == 0) options.norm.kind = NB_NORM_BATCHNORM;
            if (what == 1) options.layers = 2;
            if (what == 2) options.hidden = 17;
            if (what == 3) options.hidden = 1 << 20;
            if (what == 4) options.batch = -1;
            if (what == 5) options.sequence = 3;
            if (what == 6) options.norm.eps = (double)NAN;
            if (what == 7) options.learning_rate = -1;
            cr_expect_not_null(workload->family->complete(workload->own, &options), "%s, %d", tiny[w], what);
        }
        struct nb_train_options options = arm_of(NB_NORM_RMSNORM, NB_FUSED);
        cr_expect_null(workload->family->complete(workload->own, &options), "%s", tiny[w]);
        cr_expect_gt(workload->family->flops(workload->own, &options), 0);
    }
}

static const char *complete(const char *name, struct nb_train_options *options) {
    const struct nb_workload *workload = nb_workload_find(name);
    return workload->family->complete(workload->own, options);
}

Test(train_recurrent, widths_are_the_published_ones) {
    struct nb_train_options options = arm_of(NB_NORM_LAYERNORM, NB_COMPOSED);
    cr_assert_null(complete("rnnsearch", &options));
    cr_expect_eq(options.hidden, 1024);
    cr_expect_eq(options.batch, 80);
    cr_expect_float_eq(options.learning_rate, 1e-4, 1e-12);
    options = arm_of(NB_NORM_LAYERNORM, NB_COMPOSED);
    cr_assert_null(complete("order-embedding", &options));
    cr_expect_eq(options.hidden, 1024);
    cr_expect_eq(options.batch, 128);
    cr_expect_float_eq(options.learning_rate, 1e-3, 1e-12);
    options = arm_of(NB_NORM_LAYERNORM, NB_COMPOSED);
    cr_assert_null(complete("attentive-reader", &options));
    cr_expect_eq(options.hidden, 240);
    cr_expect_eq(options.batch, 64);
    cr_expect_float_eq(options.learning_rate, 8e-5, 1e-12);
}
