// SPDX-License-Identifier: Apache-2.0
/* Arms as words: what is understood, what is refused, what is sent to Python. */
#include <criterion/criterion.h>
#include <string.h>

#include "src/core/text.h"
#include "src/models/arm.h"
#include "tests/support/files.h"

/* The arm's one text; "" for one that is refused. */
static const char *same(const char *common, const char *text) {
    static struct nb_strbuf out;
    static char reason[200];
    struct nb_model_arm arm;
    nb_strbuf_clear(&out);
    if (!nb_model_arm_parse(&arm, common, text, reason, sizeof reason)) nb_model_arm_print(&arm, &out);
    return out.text;
}

static const char *refused(const char *text) {
    static char reason[200];
    struct nb_model_arm arm;
    return nb_model_arm_parse(&arm, NULL, text, reason, sizeof reason);
}

Test(models_arm, arms_that_are_alike_have_one_text) {
    cr_expect_str_eq(same(NULL, "layernorm"), "layernorm");
    cr_expect_str_eq(same(NULL, "pre f32 rmsnorm printed  learned clip=1"), "rmsnorm");
    cr_expect_str_eq(same(NULL, "bf16 layers=12 post nn rmsnorm rate=0.003"),
                     "rmsnorm nn post bf16 layers=12 rate=0.003");
    cr_expect_str_eq(same("batch=8 frozen", "layernorm batch=16"), "layernorm frozen batch=16");
    cr_expect_str_eq(same("layernorm", "post"), "layernorm post", "the norm may be common");
    cr_expect_str_eq(same(NULL, "none nn frozen post"), "none post", "without a norm there is neither class nor gain");
    cr_expect_str_eq(same(NULL, "centre compiled by_position"), "centre",
                     "no class computes it, and it has no statistics of a batch");
    cr_expect_str_eq(same(NULL, "batchnorm by_position clip=0"), "batchnorm by_position clip=0");
}

Test(models_arm, what_is_no_word_is_refused_with_the_nearest) {
    cr_expect(strstr(refused("layernrom"), "'layernrom' is not a word for an arm; did you mean 'layernorm'?"));
    cr_expect(strstr(refused("layernorm composed"), "'composed' is not a word"));
    cr_expect(strstr(refused("layernorm layers=1.5"), "'layers=1.5'"));
    cr_expect(strstr(refused("layernorm rate=nan"), "'rate=nan'"));
    cr_expect(strstr(refused("layernorm eps=2"), "'eps=2'"));
    cr_expect(strstr(refused("post"), "names no norm"));
    cr_expect_null(refused("layernorm"));
}

Test(models_arm, a_request_has_every_choice) {
    struct nb_model_arm arm;
    char reason[200];
    cr_assert_null(nb_model_arm_parse(&arm, NULL, "batchnorm by_position no_residual bidirectional masked f16 layers=2",
                                      reason, sizeof reason));
    cr_expect_str_eq(
        json_text_of(nb_model_arm_json(&arm)),
        "{\"arm\":\"batchnorm no_residual bidirectional masked by_position f16 layers=2\",\"norm\":\"batchnorm\","
        "\"style\":\"printed\",\"affine\":\"learned\",\"place\":\"pre\",\"residual\":false,\"causal\":false,"
        "\"padding\":\"masked\",\"by_position\":true,\"dtype\":\"f16\",\"layers\":2,\"batch\":0,\"sequence\":0,"
        "\"hidden\":0,\"rate\":0,\"clip\":1,\"eps\":0,\"partial\":0}");
}

static void keep_tag(void *context, const char *axis, const char *value) {
    nb_strbuf_addf(context, " %s:%s", axis, value);
}

Test(models_arm, an_arm_is_selected_by_what_means_something_for_it) {
    const struct nb_model_workload *w = nb_model_workload_find("tiny-transformer");
    struct nb_model_arm arm;
    char reason[200];
    struct nb_strbuf tags released_by(nb_strbuf_release) = {0};
    nb_model_arm_parse(&arm, NULL, "none batch=8", reason, sizeof reason);
    nb_model_arm_complete(&arm, w);
    nb_model_arm_tag(&arm, keep_tag, &tags);
    cr_expect_str_eq(tags.text,
                     " norm:none residual:yes mask:causal padding:unpadded dtype:f32 layers:4 hidden:64 tokens:512");
    nb_strbuf_clear(&tags);
    nb_model_arm_parse(&arm, NULL, "batchnorm nn post", reason, sizeof reason);
    nb_model_arm_complete(&arm, w);
    nb_model_arm_tag(&arm, keep_tag, &tags);
    HAS(tags.text, " style:nn affine:learned place:post", " statistics:feature");
    cr_expect_null(nb_model_workload_find("nothing"));
}
