// SPDX-License-Identifier: Apache-2.0
/* A step as a list of operations: what follows from it, a config.json as such a list, and what is said of one that is wrong. */
#include <criterion/criterion.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/models/operations.h"
#include "tests/support/files.h"

TestSuite(operations, .init = quiet);

#define TRAINING "\"title\":\"t\",\"source\":\"s\",\"work\":\"training\",\"tokens\":64,\"parameters\":700,\"tensors\":3"
#define INFERENCE "\"title\":\"t\",\"source\":\"s\",\"work\":\"inference\",\"tokens\":64"
#define LLAMA                                                                                                          \
    "\"hidden_size\":64,\"num_hidden_layers\":3,\"intermediate_size\":96,\"num_attention_heads\":4,"                   \
    "\"num_key_value_heads\":2,\"vocab_size\":100,\"max_position_embeddings\":24"

static int parse(struct nb_model_step *step, const char *text, int tokens) {
    return nb_model_step_parse(step, "m.json", text, strlen(text), tokens);
}

static struct nb_model_step read(const char *text, int tokens) {
    struct nb_model_step step;
    cr_assert_eq(parse(&step, text, tokens), 0, "%s", text);
    release_at_end(&step, sizeof step, (void (*)(void *))nb_model_step_release);
    return step;
}

static struct nb_model_step preset(const char *name, int tokens) {
    struct nb_model_step step;
    cr_assert_eq(nb_model_step_read(&step, name, tokens), 0, "%s", name);
    release_at_end(&step, sizeof step, (void (*)(void *))nb_model_step_release);
    return step;
}

static const struct nb_step_work *work_of(const struct nb_model_step *step, enum nb_model_part part,
                                          enum nb_step_work_kind kind, int64_t rows, int64_t cols) {
    for (size_t i = 0; i < step->n_works; i++) {
        const struct nb_step_work *w = &step->works[i];
        if (w->part == part && w->kind == kind && w->rows == rows && w->cols == cols) return w;
    }
    return NULL;
}

static double count_of(const struct nb_model_step *step, enum nb_model_part part, int64_t rows, int64_t cols) {
    const struct nb_step_work *w = work_of(step, part, NB_WORK_NORM, rows, cols);
    return w ? w->count : 0;
}

Test(operations, a_product_has_two_products_backward) {
    struct nb_model_step s =
        read("{" TRAINING ",\"operations\":[{\"op\":\"product\",\"shape\":\"5x7x11\",\"batch\":2,\"count\":3}]}", 0);
    const struct nb_step_work *y = work_of(&s, NB_PART_FORWARD, NB_WORK_PRODUCT, 5, 11),
                              *dx = work_of(&s, NB_PART_BACKWARD, NB_WORK_PRODUCT, 5, 7),
                              *dw = work_of(&s, NB_PART_BACKWARD, NB_WORK_PRODUCT, 7, 11);
    cr_assert(y && dx && dw);
    cr_expect(y->inner == 7 && dx->inner == 11 && dw->inner == 5);
    cr_expect(y->count == 3 && dx->count == 3 && dw->count == 3 && y->batch == 2 && dw->dispatches == 1);
    cr_expect(y->flops == 2.0 * 2 * 5 * 7 * 11 && dx->flops == y->flops && dw->flops == y->flops);
}

Test(operations, inference_has_no_backward_pass_and_no_update) {
    struct nb_model_step s = read("{" INFERENCE ",\"operations\":[{\"op\":\"norm\",\"shape\":\"64x512\"},"
                                  "{\"op\":\"norm\",\"shape\":\"64x512\",\"count\":4}]}",
                                  0);
    cr_expect(s.n_works == 1 && count_of(&s, NB_PART_FORWARD, 64, 512) == 5, "the same work is one");
}

Test(operations, what_is_moved_is_counted_in_bytes_both_ways) {
    struct nb_model_step s =
        read("{" TRAINING ",\"operations\":[{\"op\":\"elementwise\",\"shape\":\"2x8\",\"reads\":3,\"writes\":1,"
             "\"dispatches\":5},{\"op\":\"softmax\",\"shape\":\"2x16\",\"count\":2}]}",
             0);
    const double tensor = 2 * 8 * 4;
    const struct nb_step_work *w = s.works;
    cr_assert_eq(s.n_works, 5);
    cr_expect(w[0].reads == 3 * tensor && w[0].writes == tensor && w[0].dispatches == 5);
    cr_expect(w[1].reads == 4 * tensor && w[1].writes == 3 * tensor && w[1].dispatches == 5 &&
              w[1].part == NB_PART_BACKWARD);
    cr_expect(w[2].reads == 2 * tensor && w[2].writes == 2 * tensor && w[2].count == 2 && w[2].dispatches == 1);
    cr_expect(w[3].reads == 4 * tensor && w[3].writes == 2 * tensor);
    cr_expect(w[4].part == NB_PART_UPDATE && w[4].reads == 4.0 * 4 * 700 && w[4].writes == 3.0 * 4 * 700 &&
              w[4].dispatches == 3);
}

Test(operations, parts_and_their_sums) {
    cr_expect(nb_part_has(NB_PART_STEP, NB_PART_UPDATE) && nb_part_has(NB_PART_PASSES, NB_PART_BACKWARD));
    cr_expect(!nb_part_has(NB_PART_PASSES, NB_PART_UPDATE) && !nb_part_has(NB_PART_FORWARD, NB_PART_BACKWARD));
}

/* As the models' cards and files say: parameters to the last one, and tensors. */
Test(operations, a_config_has_the_models_parameters) {
    static const char gpt2[] =
        "{\"model_type\":\"gpt2\",\"n_embd\":768,\"n_layer\":12,\"n_head\":12,\"n_positions\":1024,"
        "\"vocab_size\":50257,\"n_inner\":null}";
    struct nb_model_step llama = preset("llama-3-8b", 0), qwen = preset("qwen3-8b", 4096), small = read(gpt2, 0);
    cr_expect(llama.parameters == 8030261248 && llama.tensors == 291, "%.0f %.0f", llama.parameters, llama.tensors);
    cr_expect(qwen.parameters == 8190735360 && qwen.tensors == 399, "%.0f %.0f", qwen.parameters, qwen.tensors);
    cr_expect(small.parameters == 124439808 && small.tensors == 148, "%.0f %.0f", small.parameters, small.tensors);
}

Test(operations, one_token_is_generated_and_more_are_trained_on) {
    struct nb_model_step one = preset("llama-3-8b", 0), many = preset("llama-3-8b", 4096);
    cr_expect(!one.training && one.tokens == 1 && one.context == 1025);
    cr_expect(many.training && many.tokens == 4096 && many.context == 4096);
    cr_expect_eq(count_of(&many, NB_PART_BACKWARD, 4096, 4096), 65);
    const struct nb_step_work *scores = work_of(&one, NB_PART_FORWARD, NB_WORK_PRODUCT, 4, 1025);
    cr_assert(scores);
    cr_expect(scores->batch == 8 && scores->inner == 128 && scores->count == 32);
}

Test(operations, more_tokens_than_a_sequence_holds_are_several) {
    struct nb_model_step s = read("{\"model_type\":\"mistral\"," LLAMA "}", 48);
    const struct nb_step_work *scores = work_of(&s, NB_PART_FORWARD, NB_WORK_PRODUCT, 2 * 24, 24);
    cr_assert(scores);
    cr_expect_eq(scores->batch, 2 * 2);
}

Test(operations, norms_by_family) {
    struct nb_model_step qwen = read("{\"model_type\":\"qwen3\"," LLAMA "}", 8),
                         gemma = read("{\"model_type\":\"gemma2\"," LLAMA "}", 8),
                         bert = read("{\"model_type\":\"bert\"," LLAMA "}", 0);
    cr_expect(count_of(&qwen, NB_PART_FORWARD, 8, 64) == 7 && count_of(&qwen, NB_PART_FORWARD, 32, 16) == 3 &&
              count_of(&qwen, NB_PART_FORWARD, 16, 16) == 3);
    cr_expect_eq(count_of(&gemma, NB_PART_FORWARD, 8, 64), 13);
    cr_expect(bert.tokens == 24 && bert.training && count_of(&bert, NB_PART_FORWARD, 24, 64) == 8);
}

struct wrong {
    int tokens;
    const char *text, *words;
};
#define LIST(operation) "{" INFERENCE ",\n\"operations\":[\n" operation "]}"

Test(operations, what_is_wrong_is_named_with_its_place_and_mend) {
    static const struct wrong all[] = {
        {0, LIST("{\"op\":\"produkt\",\"shape\":\"1x2x3\"}"),
         "m.json:3: \"op\": the operation 'produkt' is not known; did you mean 'product'?"},
        {0, LIST("{\"op\":\"conv\",\"shape\":\"1x2\"}"),
         "'conv' is not known: product, norm, elementwise, softmax and embedding are"},
        {0, LIST("{\"op\":\"norm\",\"shape\":\"4xfive\"}"),
         "m.json:3: \"shape\": '4xfive' is not ROWSxCOLUMNS, each from 1"},
        {0, LIST("{\"op\":\"norm\",\"shape\":\"4x5x6\"}"), "'4x5x6' is not ROWSxCOLUMNS"},
        {0, LIST("{\"op\":\"product\",\"shape\":\"4x5\"}"), "'4x5' is not ROWSxINNERxCOLUMNS of a product"},
        {0, LIST("{\"op\":\"norm\",\"shape\":\"0x5\"}"), "'0x5' is not ROWSxCOLUMNS"},
        {0, LIST("{\"op\":\"norm\",\"shape\":\"4x99999999999\"}"), "is not ROWSxCOLUMNS, each from 1 to 2147483647"},
        {0, LIST("{\"op\":\"norm\",\"shape\":\"1x8388609\"}"),
         "m.json:3: \"shape\": a row of '1x8388609' is more than the 32 MiB that a norm is timed on; give it at most "
         "8388608 columns"},
        {0, LIST("{\"op\":\"norm\",\"shape\":\"4x5\",\n\"count\":0}"), "m.json:4: \"count\""},
        {0, LIST("{\"op\":\"norm\",\"shape\":\"4x5\",\"reads\":2}"),
         "\"reads\" is only for elementwise; leave it out of norm"},
        {0, LIST("{\"op\":\"elementwise\",\"shape\":\"4x5\",\"reads\":2}"),
         "elementwise needs \"reads\" and \"writes\""},
        {0, LIST("{\"op\":\"norm\"}"), "an operation needs \"shape\""},
        {0, LIST(""), "\"operations\" is a list of operations, of which there is at least one"},
        {0, "{\"title\":\"t\",\"source\":\"s\",\"work\":\"trainig\",\"tokens\":1,\"operations\":[]}",
         "\"work\" is not one of training and inference"},
        {0,
         "{\"title\":\"t\",\"source\":\"s\",\"work\":\"training\",\"tokens\":1,\"operations\":[{\"op\":\"norm\",\"shape\":\"4x5\"}]}",
         "training needs \"parameters\" and \"tensors\""},
        {7, LIST("{\"op\":\"norm\",\"shape\":\"4x5\"}"), "--tokens 7: this list is for 64 tokens"},
        {0, "{\"hidden_size\":4}", "needs \"operations\", the list of a step, or \"model_type\""},
        {0, "[]", "a model is an object"},
        {0, "{\n\"model_type\":\"mamba\"}",
         "m.json:2: \"model_type\": the family 'mamba' is not known; llama, mistral, qwen2,"},
        {0, "{\"model_type\":\"llama\"}", "no \"hidden_size\""},
        {0, "{\"model_type\":\"llama\",\n\"hidden_size\":\"4096\"}", "m.json:2: \"hidden_size\""},
        {0, "{\"model_type\":\"llama\"," LLAMA ",\"head_dim\":0}", "\"head_dim\""},
        {0,
         "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":3,\"intermediate_size\":96,"
         "\"num_attention_heads\":4,\"num_key_value_heads\":3,\"vocab_size\":9}",
         "\"num_key_value_heads\": 3 does not divide the 4 of \"num_attention_heads\""},
        {0,
         "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":3,\"intermediate_size\":96,"
         "\"num_attention_heads\":5}",
         "no \"head_dim\""},
        {0, "{\"model_type\":\"gpt2\",\"n_embd\":64,\"n_layer\":3,\"n_head\":128}",
         "\"n_head\": 128 does not divide the 64 of \"n_embd\""},
        {0, "{\"model_type\":7}", "m.json:1: \"model_type\" is a number; it must be a text"},
        {0, "{\"model_type\":\"llama\"," LLAMA ",\n\"hidden_size\":128}",
         "m.json:2: key \"hidden_size\" is given twice"},
        {0, "{\"model_type\":\"llama\"," LLAMA ",\"tie_word_embeddings\":\"no\"}",
         "\"tie_word_embeddings\" is a text; it must be true or false"},
        {1, "{\"model_type\":\"bert\"," LLAMA "}", "--tokens 1: bert generates no tokens"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct nb_model_step step released_by(nb_model_step_release);
        expect_refused(parse(&step, all[i].text, all[i].tokens), all[i].text, all[i].words);
    }
}

Test(operations, a_preset_that_is_not_there_has_a_nearest_one) {
    struct nb_model_step step;
    expect_refused(nb_model_step_read(&step, "lama-3-8b", 0), "lama-3-8b", "did you mean 'llama-3-8b'?");
    nb_model_step_release(&step);
    expect_refused(nb_model_step_read(&step, "t5", 0), "t5", "llama-3-8b, ");
    nb_model_step_release(&step);
}

Test(operations, every_model_that_is_published_with_the_program_can_be_read) {
    struct nb_strings names released_by(nb_strings_release) = nb_dir_list("configs/models", ".json");
    cr_expect(names.n >= 2);
    for (size_t i = 0; i < names.n; i++) {
        struct nb_model_step step = preset(names.items[i], 0);
        cr_expect(step.n_works > 0 && *step.title && *step.source, "%s", names.items[i]);
    }
}
