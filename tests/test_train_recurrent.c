// SPDX-License-Identifier: Apache-2.0
/* The recurrent workloads at their tiny widths: gradients, learning, repeatability, what they refuse and what they tell. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/case/case.h"
#include "tests/test_support_training.h"

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
        snprintf(what, sizeof what, "%s, %s", workload, nb_norm_kind_name(kinds[k]));
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
