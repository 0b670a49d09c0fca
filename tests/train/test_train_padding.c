// SPDX-License-Identifier: Apache-2.0
/* Padded sequences: BatchNorm over sets of rows, transformers that train on them, and the claim that is made of it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/claims.h"
#include "src/claims/training.h"
#include "src/core/random.h"
#include "src/train/norm_layer.h"
#include "src/train/workload.h"
#include "tests/support/files.h"
#include "tests/support/train.h"
#include "tests/support/training.h"

TestSuite(train_padding, .init = quiet);

/* ---- BatchNorm in sets of rows ---- */

enum { SEQUENCES = 3, SEQUENCE = 2, ROWS = SEQUENCES * SEQUENCE, COLS = 8, N = ROWS * COLS };
static const int32_t lengths[SEQUENCES] = {SEQUENCE, SEQUENCE, SEQUENCE - 1};

struct norm_test {
    struct nb_model model;
    struct nb_norm_layer layer;
    struct nb_row_sets sets;
    float x[N], y[N], w[N];
};

static void open_norm(struct norm_test *t, bool masked, bool by_position) {
    *t = (struct norm_test){.sets = {SEQUENCES, SEQUENCE, lengths, masked, by_position}};
    t->model.options.norm =
        (struct nb_norm_choice){.kind = NB_NORM_BATCHNORM, .eps = 1e-2, .by_position = by_position, .sets = &t->sets};
    nb_test_load_kernels();
    nb_norm_layer_init(&t->layer, &t->model, "n", ROWS, COLS);
    cr_assert(!t->model.failed);
    for (int i = 0; i < N; i++) {
        t->x[i] = (float)nb_random_normal(nb_random_stream(1, 1), (uint64_t)i) + 0.5f;
        t->w[i] = (float)nb_random_normal(nb_random_stream(1, 2), (uint64_t)i);
    }
    for (int i = 0; i < t->model.parameters.n; i++)
        for (int64_t j = 0; j < t->model.parameters.items[i].cols; j++)
            t->model.parameters.items[i].value[j] += 0.125f * (float)(j % 3);
}

static double norm_loss(void *context) {
    struct norm_test *t = context;
    double sum = 0;
    nb_norm_forward(&t->layer, t->y, t->x, 0, ROWS, true);
    for (int i = 0; i < N; i++) sum += (double)t->w[i] * t->y[i];
    return sum;
}

Test(train_padding, batchnorm_in_sets_has_the_gradients_of_differences) {
    for (int way = 0; way < 4; way++) {
        struct norm_test t;
        float dx[N];
        open_norm(&t, way & 1, way >> 1);
        norm_loss(&t);
        nb_norm_backward(&t.layer, dx, t.w, t.x, 0, ROWS);
        const struct nb_test_loss loss = {norm_loss, &t, nb_test_noise_of_sum(N, ROWS + 8)};
        nb_test_gradient("x", &loss, t.x, dx, N, 0.03125);
        cr_assert_eq(t.model.parameters.n, 2);
        for (int i = 0; i < 2; i++) {
            const struct nb_parameter *p = &t.model.parameters.items[i];
            cr_expect_eq(p->cols, COLS * (way >> 1 ? SEQUENCE : 1));
            nb_test_gradient(p->name, &loss, p->value, p->gradient, p->cols, 0.25);
        }
        nb_model_release(&t.model);
    }
}

/* What the first sequence's rows become when the padding, the last row, holds something else. */
static bool sees_padding(bool masked, bool by_position, int row, bool training) {
    struct norm_test t;
    float before[COLS];
    open_norm(&t, masked, by_position);
    norm_loss(&t);
    nb_norm_forward(&t.layer, t.y, t.x, 0, ROWS, training);
    memcpy(before, t.y + row * COLS, sizeof before);
    for (int c = 0; c < COLS; c++) t.x[(ROWS - 1) * COLS + c] += 3;
    nb_norm_forward(&t.layer, t.y, t.x, 0, ROWS, training);
    const bool sees = memcmp(before, t.y + row * COLS, sizeof before) != 0;
    for (int c = 0; c < COLS && masked; c++) cr_expect_eq(t.y[(ROWS - 1) * COLS + c], 0, "a row of no set");
    nb_model_release(&t.model);
    return sees;
}

Test(train_padding, statistics_see_padding_unless_it_is_masked) {
    cr_expect(sees_padding(false, false, 0, true) && sees_padding(false, false, 1, true));
    cr_expect(!sees_padding(true, false, 0, true) && !sees_padding(true, false, 1, true));
    cr_expect(!sees_padding(false, true, 0, true), "position 0 has none");
    cr_expect(sees_padding(false, true, 1, true));
    cr_expect(!sees_padding(true, true, 1, true));
    cr_expect(!sees_padding(false, false, 0, false), "running statistics look at no row");
}

Test(train_padding, masked_statistics_are_those_of_the_real_rows_alone) {
    struct norm_test t, alone;
    open_norm(&t, true, false);
    open_norm(&alone, false, false);
    norm_loss(&t);
    nb_norm_forward(&alone.layer, alone.y, alone.x, 0, ROWS - 1, true);
    cr_expect_eq(memcmp(alone.y, t.y, (ROWS - 1) * COLS * sizeof(float)), 0);
    cr_expect_eq(memcmp(alone.layer.running_var, t.layer.running_var, COLS * sizeof(float)), 0);
    nb_model_release(&t.model);
    nb_model_release(&alone.model);
}

/* ---- transformers ---- */

static struct nb_train_options options_of(const char *arm) {
    struct nb_train_options o;
    char reason[200];
    cr_assert_null(nb_arm_parse(&o, NULL, arm, reason, sizeof reason), "%s", reason);
    return o;
}

Test(train_padding, padded_transformers_have_the_gradients_of_differences) {
    static const char *const arms[] = {"layernorm padded", "batchnorm padded", "batchnorm masked",
                                       "batchnorm padded by_position", "batchnorm masked by_position"};
    const struct nb_text text = plain_text();
    for (size_t i = 0; i < sizeof arms / sizeof arms[0]; i++) {
        struct nb_model model;
        struct nb_train_options o = options_of(arms[i]);
        o.layers = 1;
        o.batch = 3;
        o.sequence = 8;
        o.hidden = 16;
        make_model(&model, "tiny-transformer", &o);
        assert_gradients(&model, &text, arms[i]);
        nb_model_release(&model);
    }
}

static void refused(const char *workload, const char *arm, const char *words) {
    struct nb_train_options o = options_of(arm);
    const struct nb_workload *w = nb_workload_find(workload);
    const char *reason = w->family->complete(w->own, &o);
    cr_expect(reason && strstr(reason, words), "%s %s: %s", workload, arm, reason ? reason : "taken");
}

Test(train_padding, what_means_nothing_is_refused) {
    refused("tiny-transformer", "layernorm masked", "BatchNorm's statistics");
    refused("tiny-transformer", "rmsnorm by_position", "BatchNorm's statistics");
    refused("tiny-transformer", "batchnorm padded bidirectional", "causal");
    refused("tiny-transformer", "batchnorm padded batch=1", "batch of 2");
    refused("minimind-3", "batchnorm masked", "QK-norm");
    refused("tiny-convpool", "batchnorm padded", "transformers");
    refused("tiny-rnnsearch", "layernorm padded", "transformers");
}

/* ---- the claim ---- */

static bool is_padded(const char *arm) { return strstr(arm, " padded") != NULL; }

static cJSON *answer_of(const struct nb_training *t, int arm, int seed, double padded) {
    const double loss = (2 + 0.3 * seed) * (is_padded(t->arms[arm]) ? padded : 1);
    struct nb_strbuf text = {0};
    nb_strbuf_addf(
        &text,
        "{\"request\":{\"measure\":\"course\",\"workload\":\"%s\",\"round\":%d,\"steps\":%g,\"arms\":[\"%s\"]},"
        "\"status\":\"ok\",\"arms\":[{\"arm\":\"%s\",\"final_loss\":%g,\"unseen_loss\":%g,\"failed_steps\":0,"
        "\"wanted_steps\":%g}]}",
        t->workload_name, seed, t->steps, t->arms[arm], t->arms[arm], loss, loss, t->steps);
    cJSON *answer = cJSON_Parse(text.text);
    nb_strbuf_release(&text);
    return answer;
}

/* The claim's reading about learning, where padding multiplies the loss by padded. */
static enum nb_claim_verdict judged(double padded, double noise) {
    static const char *const id = "bn-padding";
    struct nb_claims claims;
    struct nb_train_results results = {0};
    struct nb_findings findings = {0};
    struct nb_rulings rulings = {0};
    char *reason;
    cr_assert_eq(nb_claims_read(&claims, &id, 1), 0);
    const struct nb_reading *r = nb_claim_reading(&claims.items[0], "learning");
    cr_assert_not_null(r);
    const struct nb_training *t = claims.items[0].experiments[r->experiment].own;
    for (int seed = 0; seed < 6; seed++)
        for (size_t a = 0; a < t->words.n; a++)
            nb_train_results_add(&results, answer_of(t, (int)a, seed, padded + noise * (seed - 2.5)));
    nb_training_find(t, &results, NULL, &findings);
    for (size_t i = 0; i < r->n_rules; i++) nb_rule_apply(&r->rules[i], &findings, NULL, NULL, &rulings);
    cr_expect_eq(rulings.n, 2, "statistics by feature and by position");
    const enum nb_claim_verdict verdict = nb_verdict_of(&rulings, &reason);
    free(reason);
    nb_rulings_release(&rulings);
    nb_findings_release(&findings);
    nb_train_results_release(&results);
    nb_claims_release(&claims);
    return verdict;
}

Test(train_padding, the_claim_comes_out_as_the_losses_do) {
    cr_expect_eq(judged(1.1, 0), NB_REPRODUCED, "seeds differ by more, and are paired");
    cr_expect_eq(judged(1.005, 0), NB_NOT_REPRODUCED);
    cr_expect_eq(judged(0.9, 0), NB_NOT_REPRODUCED);
    cr_expect_eq(judged(1.02, 0.02), NB_UNDECIDED_HERE);
}
