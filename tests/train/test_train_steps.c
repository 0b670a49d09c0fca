// SPDX-License-Identifier: Apache-2.0
/* Steps of arms in turn, runs with curves, arms as words; on a model so small that what it does is known: two numbers that descend. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <math.h>
#include <string.h>

#include "src/train/data.h"
#include "src/train/train_job.c"
#include "src/train/workload.h"
#include "tests/support/files.h"

TestSuite(train_steps, .init = quiet);

/* ---- a workload: loss = mean of p^2, told of as layers; without a norm the loss is no number after ten steps ---- */

enum { SIZE = 4, FAILS_AT = 10 };
struct parabola {
    struct nb_parameter *p;
    int calls;
};
static char order[512]; /* of the arms, as their forward passes come: 'r', 'l' */

static const char *complete(const void *own, struct nb_train_options *o) {
    (void)own;
    if (o->layers == 0) o->layers = 2;
    return o->layers > 9 ? "layers must be at most 9" : NULL;
}
static void create(struct nb_model *model) {
    struct parabola *t = nb_arena_take_bytes(&model->passing, sizeof *t);
    model->inside = t;
    t->p = nb_parameter_vector(&model->parameters, "p", "", SIZE, 0);
    for (int i = 0; i < SIZE; i++) t->p->value[i] = (float)(i + 1);
    model->activation_bytes = 64;
}
static double forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training) {
    struct parabola *t = model->inside;
    double loss = 0;
    (void)text, (void)batch;
    for (int i = 0; i < SIZE; i++) loss += (double)t->p->value[i] * (double)t->p->value[i] / SIZE;
    nb_model_observe(model, NB_ACTIVATION, "layer0", "input", t->p->value, SIZE);
    nb_model_observe(model, NB_ACTIVATION, "layer1", "input", t->p->value, 2);
    model->norm_seconds[NB_FORWARD] += 1e-9;
    const size_t n = strlen(order);
    if (n + 1 < sizeof order) order[n] = nb_norm_kind_names[model->options.norm.kind][0];
    return training && model->options.norm.kind == NB_NORM_NONE && t->calls++ >= FAILS_AT ? (double)NAN : loss;
}
static void backward(struct nb_model *model, double scale) {
    struct parabola *t = model->inside;
    for (int i = 0; i < SIZE; i++) t->p->gradient[i] += (float)(2 * scale * (double)t->p->value[i] / SIZE);
    nb_model_observe(model, NB_GRADIENT, "layer0", "input", t->p->gradient, SIZE);
}
static struct nb_optimizer optimizer(const void *own, const struct nb_train_options *o) {
    (void)own;
    (void)o;
    return (struct nb_optimizer){.kind = NB_SGD, .learning_rate = 0.1};
}
static double flops(const void *own, const struct nb_train_options *o) {
    (void)own;
    return 1e6 * o->layers;
}
static const struct nb_model_family parabolas = {.complete = complete,
                                                 .create = create,
                                                 .forward = forward,
                                                 .backward = backward,
                                                 .optimizer = optimizer,
                                                 .flops = flops};
static const struct nb_workload parabola = {.name = "parabola", .summary = "p^2", .family = &parabolas};

static struct nb_train_options arm_of(const char *text) {
    struct nb_train_options o;
    char reason[200];
    cr_assert_null(nb_arm_parse(&o, NULL, text, reason, sizeof reason), "%s", reason);
    return o;
}

/* ---- arms ---- */

static void prints(const char *text, const char *expected) {
    const struct nb_train_options o = arm_of(text);
    struct nb_strbuf out = {0};
    nb_arm_print(&o, &out);
    cr_expect_str_eq(out.text, expected, "'%s' is '%s'", text, out.text);
    const struct nb_train_options again = arm_of(out.text);
    struct nb_strbuf twice = {0};
    nb_arm_print(&again, &twice);
    cr_expect_str_eq(twice.text, expected);
    nb_strbuf_release(&out);
    nb_strbuf_release(&twice);
}

Test(train_steps, arms_are_words_in_any_order) {
    prints("rmsnorm", "rmsnorm fused");
    prints("post layers=4 composed layernorm", "layernorm composed post layers=4");
    prints("none composed", "none");
    prints("none frozen", "none");
    prints("frozen scale", "scale frozen");
    prints("masked by_position batchnorm", "batchnorm fused by_position masked");
    prints("by_feature unpadded layernorm", "layernorm fused");
    prints("batchnorm fused pre residual no_residual f16 rate=0.5 clip=0",
           "batchnorm fused no_residual f16 rate=0.5 clip=0");
}

static void refused(const char *text, const char *expected) {
    struct nb_train_options o;
    char reason[200] = "";
    cr_expect(nb_arm_parse(&o, NULL, text, reason, sizeof reason) && strstr(reason, expected), "'%s': %s", text,
              reason);
}

Test(train_steps, words_for_no_arm_are_refused_with_the_nearest) {
    refused("layernrom", "did you mean 'layernorm'");
    refused("post", "names no norm");
    refused("rmsnorm layers=x", "is not a word for an arm");
    refused("rmsnorm layers=1.5", "is not a word for an arm");
    refused("rmsnorm layers=-1", "is not a word for an arm");
    refused("rmsnorm rate=nan", "is not a word for an arm");
    refused("rmsnorm layers=", "is not a word for an arm");
    char reason[200];
    struct nb_train_options o;
    cr_expect_null(nb_arm_parse(&o, "layers=3 batch=2 post", "rmsnorm batch=4", reason, sizeof reason));
    cr_expect(o.layers == 3 && o.batch == 4 && o.place == NB_POST_NORM && o.norm.kind == NB_NORM_RMSNORM);
}

/* ---- steps ---- */

Test(train_steps, arms_take_turns_in_orders_that_come_with_their_reverse) {
    struct step_arm arms[3] = {
        {.options = arm_of("rmsnorm")}, {.options = arm_of("layernorm")}, {.options = arm_of("centre")}};
    const struct steps_options how = {.launch_s = 10, .most_blocks = 8, .seed = 5};
    const struct nb_text text = {0};
    int n_blocks, first[3] = {0};
    cr_assert_eq(steps_measure(arms, 3, &parabola, &text, &how, &n_blocks), 0);
    cr_expect_eq(n_blocks, 8);
    cr_expect_eq(strncmp(order, "rlc", 3), 0, "each is warmed by a step");
    cr_expect_eq(strlen(order), 3 + 3 * 8u);
    for (int block = 0; block < 8; block += 2) {
        const char *one = order + 3 + 3 * block, *other = one + 3;
        for (int i = 0; i < 3; i++) cr_expect_eq(one[i], other[2 - i], "block %d: %.3s, %.3s", block, one, other);
        first[one[0] == 'r' ? 0 : one[0] == 'l' ? 1 : 2]++;
    }
    cr_expect(first[0] < 4 && first[1] < 4 && first[2] < 4, "orders are drawn");
    for (int a = 0; a < 3; a++) {
        for (int block = 0; block < 8; block++) {
            const double whole = arms[a].seconds[NB_STEP_WHOLE][block], passes = arms[a].seconds[NB_STEP_PASSES][block];
            cr_expect(whole >= passes && passes > 0);
            cr_expect_float_eq(
                passes, arms[a].seconds[NB_STEP_FORWARD][block] + arms[a].seconds[NB_STEP_BACKWARD][block], 1e-15);
            cr_expect_float_eq(arms[a].seconds[NB_STEP_NORM][block], 1e-9, 1e-18);
            cr_expect_eq(arms[a].loss[block], arms[0].loss[block], "arms see the same batches");
        }
        cr_expect(arms[a].loss[7] < arms[a].loss[0]);
        cr_expect_eq(arms[a].kept_bytes, 64);
    }
    steps_release(arms, 3);
}

Test(train_steps, two_blocks_at_least_and_what_cannot_be_made_is_an_error) {
    struct step_arm arms[1] = {{.options = arm_of("rmsnorm")}},
                    wrong[2] = {{.options = arm_of("rmsnorm")}, {.options = arm_of("rmsnorm layers=10")}};
    const struct steps_options how = {.launch_s = 0, .most_blocks = 8, .seed = 5};
    const struct nb_text text = {0};
    int n_blocks;
    cr_assert_eq(steps_measure(arms, 1, &parabola, &text, &how, &n_blocks), 0);
    cr_expect_eq(n_blocks, 2);
    steps_release(arms, 1);
    cr_redirect_stderr();
    cr_expect_eq(steps_measure(wrong, 2, &parabola, &text, &how, &n_blocks), -1);
    steps_release(wrong, 2);
}

/* ---- courses ---- */

Test(train_steps, a_course_records_its_losses_and_curves) {
    struct course c;
    const struct nb_train_options o = arm_of("rmsnorm");
    const struct course_options how = {.steps = 21, .records = 5};
    const struct nb_text text = {0};
    cr_assert_eq(course_run(&c, &parabola, &o, &text, &how), 0);
    cr_expect(c.n_steps == 21 && c.n_failed == 0 && c.loss[0] == 7.5);
    for (int s = 1; s < 21; s++) cr_expect(c.loss[s] < c.loss[s - 1]);
    cr_expect(c.unseen_loss < c.loss[20]);
    cr_assert_eq(c.curves.n_records, 5);
    for (int r = 0; r < 5; r++) cr_expect_eq(c.curves.steps[r], 5 * r);
    cr_assert_eq(c.curves.n, 3, "two places, one with a gradient");
    cr_expect_str_eq(c.curves.items[0].place, "layer0.input");
    cr_expect_float_eq(c.curves.items[0].std[0], sqrt(1.25), 1e-9, "of 1, 2, 3, 4");
    cr_expect_float_eq(c.curves.items[1].std[0], 0.5, 1e-9, "of 1, 2");
    cr_expect(c.curves.items[2].gradient);
    cr_expect_float_eq(c.curves.items[2].std[0], sqrt(1.25) / 2, 1e-7);
    course_release(&c);
}

Test(train_steps, a_course_that_ends_in_no_number_counts_what_it_did_not_do) {
    struct course c;
    const struct nb_train_options o = arm_of("none");
    const struct course_options how = {.steps = 50, .records = 3};
    const struct nb_text text = {0};
    cr_assert_eq(course_run(&c, &parabola, &o, &text, &how), 0);
    cr_expect_eq(c.n_steps, FAILS_AT + 1);
    cr_expect_eq(c.n_failed, 50 - FAILS_AT);
    cr_expect(isnan(c.unseen_loss));
    cr_expect_eq(course_final_loss(c.loss, c.n_steps, 50), c.loss[0], "as good as knowing nothing");
    course_release(&c);
}

Test(train_steps, the_final_loss_is_of_the_last_tenth) {
    double loss[40];
    for (int i = 0; i < 40; i++) loss[i] = i < 36 ? 9 : i - 35;
    cr_expect_float_eq(course_final_loss(loss, 40, 40), 2.5, 1e-12);
    loss[39] = NAN;
    cr_expect_float_eq(course_final_loss(loss, 40, 40), 9, 1e-12);
    cr_expect_float_eq(course_final_loss(loss, 1, 1), 9, 1e-12);
}
