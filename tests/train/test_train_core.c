// SPDX-License-Identifier: Apache-2.0
/* Steps: optimizer, clipping, loss scale, rounding, text, and that training learns. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/random.h"
#include "src/train/parameters.h"
#include "src/train/tensor.h"
#include "src/train/workload.h"
#include "tests/support/sparsely.h"
#include "tests/support/train.h"

/* ---- optimizer ---- */

Test(train_core, adamw_as_by_hand) {
    static const double gradients[3] = {0.5, -0.25, 1};
    const struct nb_optimizer o = {NB_ADAMW, 0.1, 0.9, 0.99, 1e-8, 0.5};
    struct nb_parameters p = {0};
    struct nb_parameter *matrix = nb_parameter_matrix(&p, "w", "", 1, 1, 0, 0);
    struct nb_parameter *gain = nb_parameter_vector(&p, "", "g", 1, 2),
                        *frozen = nb_parameter_vector(&p, "f", "", 1, 2);
    frozen->frozen = true;
    double m = 0, v = 0, w = 2, g = 2;
    matrix->value[0] = 2;
    for (int t = 1; t <= 3; t++) {
        for (int i = 0; i < p.n; i++) p.items[i].gradient[0] = (float)gradients[t - 1];
        nb_optimizer_update(&o, &p);
        m = 0.9 * m + 0.1 * gradients[t - 1];
        v = 0.99 * v + 0.01 * gradients[t - 1] * gradients[t - 1];
        const double move = 0.1 * (m / (1 - pow(0.9, t))) / (sqrt(v / (1 - pow(0.99, t))) + 1e-8);
        w = w - 0.1 * 0.5 * w - move;
        g -= move;
        cr_assert_float_eq(matrix->value[0], w, 1e-6);
        cr_assert_float_eq(gain->value[0], g, 1e-6, "no decay of gains");
        cr_assert_eq(frozen->value[0], 2);
    }
    nb_parameters_release(&p);
}

Test(train_core, descent_and_gradient_norms) {
    struct nb_parameters p = {0};
    struct nb_parameter *a = nb_parameter_matrix(&p, "a", "", 1, 2, 0, 0);
    struct nb_parameter *frozen = nb_parameter_matrix(&p, "f", "", 1, 1, 0, 0);
    frozen->frozen = true;
    a->gradient[0] = 3;
    a->gradient[1] = 4;
    frozen->gradient[0] = 100;
    cr_assert_eq(nb_parameters_gradient_norm(&p), 5);
    nb_parameters_scale_gradients(&p, 0.5f);
    nb_optimizer_update(&(struct nb_optimizer){.kind = NB_SGD, .learning_rate = 0.1}, &p);
    cr_assert_float_eq(a->value[1], -0.2, 1e-7);
    a->gradient[0] = INFINITY;
    cr_assert(isinf(nb_parameters_gradient_norm(&p)));
    a->gradient[0] = NAN;
    cr_assert(isnan(nb_parameters_gradient_norm(&p)));
    nb_parameters_release(&p);
}

Test(train_core, first_values_hang_on_seed_and_name_alone) {
    struct nb_parameters p = {0}, q = {0}, r = {0};
    const struct nb_parameter *alone = nb_parameter_matrix(&p, "w", "", 100, 100, 5, 0.02);
    const struct nb_parameter *other = nb_parameter_matrix(&q, "v", "", 100, 100, 5, 0.02),
                              *second = nb_parameter_matrix(&q, "w", "", 100, 100, 5, 0.02);
    double sum = 0, square = 0;
    cr_assert_arr_eq(alone->value, second->value, 10000 * sizeof(float));
    cr_assert_neq(alone->value[0], other->value[0]);
    for (int i = 0; i < 10000; i++) sum += alone->value[i], square += (double)alone->value[i] * alone->value[i];
    cr_assert_float_eq(sum / 10000, 0, 5 * 0.02 / 100);
    cr_assert_float_eq(sqrt(square / 10000), 0.02, 5 * 0.02 / 141);
    cr_assert_neq(alone->value[0], nb_parameter_matrix(&r, "w", "", 100, 100, 6, 0.02)->value[0]);
    nb_parameters_release(&p);
    nb_parameters_release(&q);
    nb_parameters_release(&r);
}

Test(train_core, what_another_model_drew_is_copied_where_it_is_the_same) {
    struct nb_parameters p = {0}, q = {.like = &p};
    struct nb_parameter *drawn = nb_parameter_matrix(&p, "w", "", 10, 10, 5, 0.02);
    nb_parameter_vector(&p, "gain", "", 100, 7);
    drawn->value[3] = 42; /* shows where it goes */
    cr_assert_eq(nb_parameter_matrix(&q, "w", "", 10, 10, 5, 0.02)->value[3], 42);
    cr_assert_neq(nb_parameter_matrix(&q, "w", "", 10, 10, 6, 0.02)->value[3], 42, "another seed");
    cr_assert_neq(nb_parameter_matrix(&q, "w", "", 10, 10, 5, 0.04)->value[3], 42, "another width of the distribution");
    cr_assert_neq(nb_parameter_matrix(&q, "w", "", 5, 20, 5, 0.02)->value[3], 42, "another shape");
    cr_assert_neq(nb_parameter_matrix(&q, "v", "", 10, 10, 5, 0.02)->value[3], 42, "another name");
    cr_assert_neq(nb_parameter_matrix(&q, "gain", "", 1, 100, 0, 0)->value[3], 7, "no matrix");
    nb_parameters_release(&p);
    nb_parameters_release(&q);
}

/* ---- precision ---- */

Test(train_core, rounding_is_that_of_the_formats) {
    static const float special[] = {0.0f,    -0.0f,    65504,    65519.99f, 65520,          -65520,   1e30f,
                                    3.4e38f, 0x1p-14f, 0x1p-24f, 0x1p-25f,  0x1.8p-25f,     0x3p-25f, -0x1p-26f,
                                    6.1e-5f, 1e-40f,   INFINITY, -INFINITY, 1.00048828125f, 2049,     2051};
    static const enum nb_dtype dtypes[] = {NB_F16, NB_BF16};
    enum { N_SPECIAL = sizeof special / sizeof special[0], N_ALL = 200000 };
    float *x = malloc(N_ALL * sizeof *x);
    for (int d = 0; d < 2; d++) {
        for (int i = 0; i < N_ALL; i++) {
            const uint32_t bits = (uint32_t)(nb_random_bits(nb_random_stream(1, 1), (uint64_t)i) >> 32);
            memcpy(&x[i], &bits, sizeof bits); /* of any size; many are beyond f16 */
            if (i % 2) x[i] = (float)(nb_random_normal(nb_random_stream(1, 2), (uint64_t)i) * ldexp(1, -(i % 32)));
            if (i < N_SPECIAL) x[i] = special[i];
        }
        for (int i = 0; i < N_ALL; i++) {
            float rounded = x[i];
            nb_round_tensor(&rounded, 1, dtypes[d]);
            const double expected = nb_round_to(x[i], dtypes[d]);
            cr_assert(isnan(expected) ? isnan(rounded) : rounded == expected && !signbit(rounded) == !signbit(expected),
                      "%a to %s: %a, not %a", x[i], nb_formats[dtypes[d]].name, rounded, expected);
        }
    }
    const float kept = x[50];
    nb_round_tensor(x, N_ALL, NB_F32);
    cr_assert(memcmp(&kept, &x[50], sizeof kept) == 0);
    free(x);
}

struct places {
    enum nb_dtype dtype;
    int seen, rounded;
};
static void see(void *context, enum nb_observed what, const char *place, const float *values, int64_t n) {
    struct places *p = context;
    bool all = true;
    (void)what, (void)place;
    for (int64_t i = 0; i < n; i++) all = all && nb_round_to(values[i], p->dtype) == (double)values[i];
    p->seen++;
    p->rounded += all;
}

Test(train_core, activations_gradients_and_weights_in_use_are_rounded_but_not_the_kept_ones) {
    for (enum nb_dtype dtype = NB_F32; dtype < NB_N_DTYPES; dtype++)
        for (int place = 0; place < NB_N_NORM_PLACES; place++) {
            struct places seen = {.dtype = dtype == NB_F32 ? NB_BF16 : dtype};
            const struct nb_observer observer = {see, &seen};
            const struct nb_text text = nb_test_text();
            struct nb_model model;
            struct nb_train_options o = nb_test_train_options(NB_NORM_LAYERNORM, NB_FUSED, place);
            o.dtype = dtype;
            nb_test_transformer(&model, &nb_test_transformer_shape, &o);
            model.observer = &observer;
            nb_model_forward(&model, &text, 0, true);
            nb_model_backward(&model, 1024);
            cr_assert_eq(seen.seen, 30);
            cr_assert_eq(seen.rounded, dtype == NB_F32 ? 0 : seen.seen, "%d of %d", seen.rounded, seen.seen);
            const struct nb_parameter *w = nb_parameter_find(&model.parameters, "layer0.attention.wq");
            const struct nb_parameter *gain = nb_parameter_find(&model.parameters, "layer0.input_layernorm.gamma");
            cr_assert_neq(nb_round_to(w->value[0], seen.dtype), (double)w->value[0]);
            cr_assert_eq(nb_parameter_used(w)[0], dtype == NB_F32 ? w->value[0] : nb_round_to(w->value[0], dtype));
            cr_assert_eq(nb_round_to(w->gradient[5], seen.dtype) == (double)w->gradient[5], dtype != NB_F32);
            cr_assert_null(gain->rounded);
            nb_model_release(&model);
        }
}

Test(train_core, loss_scale_halves_on_overflow_and_doubles_after_long) {
    struct nb_loss_scale s;
    nb_loss_scale_init(&s, NB_BF16);
    cr_assert(nb_loss_scale_update(&s, false), "without f16 every step is made");
    cr_assert_eq(s.scale, 1);
    nb_loss_scale_init(&s, NB_F16);
    cr_assert_eq(s.scale, 65536);
    cr_assert_not(nb_loss_scale_update(&s, false));
    cr_assert_eq(s.scale, 32768);
    cr_assert_eq(s.skipped_steps, 1);
    for (int64_t i = 0; i < s.growth_interval - 1; i++) cr_assert(nb_loss_scale_update(&s, true));
    cr_assert_eq(s.scale, 32768);
    cr_assert(nb_loss_scale_update(&s, true));
    cr_assert_eq(s.scale, 65536);
}

Test(train_core, an_overflowing_step_of_f16_changes_no_weight) {
    const struct nb_text text = nb_test_text();
    struct nb_model model;
    struct nb_train_options o = nb_test_train_options(NB_NORM_RMSNORM, NB_FUSED, NB_PRE_NORM);
    o.dtype = NB_F16;
    nb_test_transformer(&model, &nb_test_transformer_shape, &o);
    model.loss_scale.scale = 0x1p40; /* dlogits overflow */
    const struct nb_parameter *w = nb_parameter_find(&model.parameters, "layer0.attention.wq");
    const float before = w->value[0];
    cr_assert(isfinite(nb_model_step(&model, &text, 0)));
    cr_assert_eq(w->value[0], before);
    cr_assert_eq(model.loss_scale.scale, 0x1p39);
    cr_assert_eq(model.loss_scale.skipped_steps, 1);
    cr_assert_eq(model.parameters.step, 0);
    model.loss_scale.scale = 1024;
    nb_model_step(&model, &text, 0);
    cr_assert_neq(w->value[0], before);
    cr_assert_eq(model.parameters.step, 1);
    nb_model_release(&model);
}

/* With the scale the same gradients but for rounding, and so the same clipped length. */
Test(train_core, clipping_bounds_the_gradient_after_the_scale_is_taken_out) {
    const struct nb_text text = nb_test_text();
    double norms[2];
    for (int scaled = 0; scaled < 2; scaled++) {
        struct nb_model model;
        struct nb_train_options o = nb_test_train_options(NB_NORM_RMSNORM, NB_FUSED, NB_PRE_NORM);
        o.dtype = NB_F16;
        o.clip = 0.25;
        nb_test_transformer(&model, &nb_test_transformer_shape, &o);
        model.loss_scale.scale = scaled ? 2048 : 1024;
        nb_model_step(&model, &text, 0);
        norms[scaled] = model.gradient_norm;
        cr_assert_gt(model.gradient_norm, 0.25);
        cr_assert_float_eq(nb_parameters_gradient_norm(&model.parameters), 0.25,
                           1e-6 + 0x1p-24); /* by 0.25 / (norm + 1e-6), in f32 */
        nb_model_release(&model);
    }
    cr_assert_float_eq(norms[0] / norms[1], 1, 0.01);
}

Test(train_core, frozen_gains_stay_and_learned_ones_move) {
    const struct nb_text text = nb_test_text();
    for (int affine = 0; affine < NB_N_NORM_AFFINES; affine++) {
        struct nb_model model;
        struct nb_train_options o = nb_test_train_options(NB_NORM_LAYERNORM, NB_FUSED, NB_PRE_NORM);
        o.norm.affine = affine;
        nb_test_transformer(&model, &nb_test_transformer_shape, &o);
        for (int i = 0; i < 2; i++) nb_model_step(&model, &text, i);
        const bool frozen = affine == NB_NORM_FROZEN;
        cr_assert_eq(nb_parameter_find(&model.parameters, "layer1.input_layernorm.gamma")->value[3] == 1, frozen);
        cr_assert_eq(nb_parameter_find(&model.parameters, "norm.beta")->value[3] == 0, frozen);
        nb_model_release(&model);
    }
}

/* A norm keeps its output and its statistics: LayerNorm two a row, RMSNorm one. */
Test(train_core, kept_bytes_are_counted) {
    static const enum nb_norm_kind kinds[] = {NB_NORM_NONE, NB_NORM_RMSNORM, NB_NORM_LAYERNORM};
    size_t bytes[3];
    for (int i = 0; i < 3; i++) {
        struct nb_model model;
        const struct nb_train_options o = nb_test_train_options(kinds[i], NB_FUSED, NB_PRE_NORM);
        nb_test_transformer(&model, &nb_test_transformer_shape, &o);
        bytes[i] = model.activation_bytes;
        nb_model_release(&model);
    }
    const size_t rows = 12, norms = 5, statistic = rows * norms * sizeof(float);
    cr_assert_eq(bytes[2] - bytes[1], statistic);
    cr_assert_eq(bytes[1] - bytes[0], statistic + norms * rows * 16 * sizeof(float));
}

Test(train_core, flops_are_six_a_parameter_and_token_and_the_attention) {
    struct nb_train_options o = nb_test_train_options(NB_NORM_RMSNORM, NB_FUSED, NB_PRE_NORM);
    cr_assert_null(nb_workload_minimind2_small.family->complete(nb_workload_minimind2_small.own, &o));
    const double tokens = (double)o.batch * o.sequence, products = 6 * tokens * (25829888 - 8704);
    const double attention = 3 * 2 * 2.0 * tokens * o.sequence * 512 * 8;
    cr_assert_float_eq(nb_workload_minimind2_small.family->flops(nb_workload_minimind2_small.own, &o),
                       products + attention, 1);
}

/* ---- text ---- */

Test(train_core, sequences_follow_from_their_number_and_targets_are_the_bytes_behind) {
    const struct nb_text text = nb_test_text();
    int32_t a[300], b[300], next[300], long_tokens[2000], long_targets[2000];
    nb_text_sequence(&text, 4, 300, a, next);
    nb_text_sequence(&text, 4, 300, b, next);
    cr_assert_arr_eq(a, b, sizeof a);
    cr_assert_arr_eq(next, a + 1, 299 * sizeof *a);
    nb_text_sequence(&text, 5, 300, b, next);
    cr_assert_neq(memcmp(a, b, sizeof a), 0);
    nb_text_sequence(&text, 0, 2000, long_tokens, long_targets); /* longer than the text: it begins again */
    cr_assert_eq(long_tokens[0], long_tokens[997]);
}

Test(train_core, text_is_a_named_file_or_a_usual_one, .init = cr_redirect_stderr) {
    struct nb_text text;
    unsetenv("NORMBENCH_TEXT");
    cr_assert_eq(nb_text_open(&text, "tests/train/test_train_core.c"), 0);
    cr_assert_eq(memcmp(text.bytes, "// SPDX", 7), 0);
    nb_text_release(&text);
    cr_assert_eq(nb_text_open(&text, "/nowhere/at/all"), -1);
    cr_assert_null(text.bytes);
    cr_assert_eq(nb_text_open(&text, "/dev/null"), -1, "nothing in it");
    cr_assert_eq(nb_text_open(&text, "tests"), -1, "a folder");
    setenv("NORMBENCH_TEXT", "Makefile", 1);
    cr_assert_eq(nb_text_open(&text, NULL), 0);
    cr_assert_str_eq(text.path, "Makefile");
    nb_text_release(&text);
}

/* ---- training ---- */

static double train(enum nb_norm_kind kind, enum nb_dtype dtype, int n_steps, int n_threads, double *first) {
    struct nb_model model;
    struct nb_text text;
    struct nb_train_options o = nb_test_train_options(kind, NB_FUSED, NB_PRE_NORM);
    double sum = 0;
    o.dtype = dtype;
    o.batch = 2;
    o.sequence = 32;
    o.clip = 1;
    o.n_threads = n_threads;
    nb_test_load_kernels();
    cr_assert_eq(nb_text_open(&text, "tests/train/test_train_core.c"), 0);
    cr_assert_eq(nb_model_init(&model, &nb_workload_tiny_transformer, &o), 0);
    for (int i = 0; i < n_steps; i++) {
        const double loss = nb_model_step(&model, &text, i);
        if (i == 0) *first = loss;
        if (i >= n_steps - 10) sum += loss / 10;
    }
    nb_model_release(&model);
    nb_text_release(&text);
    return sum;
}

Test(train_core, sixty_steps_learn_in_every_precision) {
    static const enum nb_norm_kind kinds[] = {NB_NORM_RMSNORM, NB_NORM_LAYERNORM, NB_NORM_NONE};
    for (int k = 0; k < 3; k += sparsely()) {
        double first, last = train(kinds[k], NB_F32, 60, 1, &first);
        cr_assert_float_eq(first, log(256), 0.3, "nothing is known yet: %g", first);
        cr_assert_lt(last, first - 1.2, "%s: %g to %g", nb_norm_kind_names[kinds[k]], first, last);
    }
    double first, plain = train(NB_NORM_RMSNORM, NB_F32, 60, 1, &first);
    for (enum nb_dtype dtype = NB_F16; dtype < NB_N_DTYPES; dtype++) {
        const double last = train(NB_NORM_RMSNORM, dtype, 60, 1, &first);
        cr_assert_float_eq(last, plain, 0.2, "%s: %g against %g", nb_formats[dtype].name, last, plain);
        cr_assert_neq(last, plain);
    }
}

Test(train_core, a_run_repeats_to_the_bit) {
    double first[2];
    const double a = train(NB_NORM_RMSNORM, NB_F32, 12, 1, &first[0]),
                 b = train(NB_NORM_RMSNORM, NB_F32, 12, 1, &first[1]);
    cr_assert_eq(a, b);
    cr_assert_eq(first[0], first[1]);
    cr_assert_float_eq(train(NB_NORM_RMSNORM, NB_F32, 12, 2, &first[1]), a, 1e-3, "two threads order sums otherwise");
}

Test(train_core, options_that_cannot_be_are_refused, .init = cr_redirect_stderr) {
    struct nb_model model;
    nb_test_load_kernels();
    for (int i = 0; i < 6; i++) {
        struct nb_train_options o = nb_test_train_options(NB_NORM_RMSNORM, NB_FUSED, NB_PRE_NORM);
        if (i == 0) o.hidden = 63;
        if (i == 1) o.layers = -1;
        if (i == 2) o.batch = 1 << 30;
        if (i == 3) o.sequence = 1, o.batch = 1;
        if (i == 4) o.norm.partial = NAN;
        if (i == 5) o.learning_rate = -1;
        cr_assert_eq(nb_model_init(&model, &nb_workload_tiny_transformer, &o), -1, "%d", i);
    }
    struct nb_train_options o = nb_test_train_options(NB_NORM_RMSNORM, NB_FUSED, NB_PRE_NORM);
    o.hidden = 128;
    cr_assert_null(nb_workload_tiny_transformer.family->complete(nb_workload_tiny_transformer.own, &o));
    cr_assert_eq(o.layers, 4);
    cr_assert_eq(o.norm.eps, 1e-5);
    cr_assert_gt(nb_workload_tiny_transformer.family->flops(nb_workload_tiny_transformer.own, &o), 1e6);
    cr_assert_eq(nb_workload_find("tiny-transformer"), &nb_workload_tiny_transformer);
    cr_assert_null(nb_workload_find("no-such"));
}
