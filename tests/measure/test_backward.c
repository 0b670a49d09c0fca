// SPDX-License-Identifier: Apache-2.0
/* A backward case from its key to its judgement: what is laid out for it, what it is given, and that every kernel with one fault is
 * named with its own status. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/accuracy/accuracy.h"
#include "src/accuracy/gradient.h"
#include "src/core/case.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/measure/check.h"
#include "src/measure/metamorphic.h"
#include "tests/support/cases.h"
#include "tests/support/files.h"
#include "tests/support/trials.h"

static void comes_out(const char *key, enum nb_status status, const char *reason) {
    struct solved s released_by(solved_release);
    solve_key(&s, key);
    const struct nb_checked checked = checked_by(&s);
    cr_expect_eq(checked.status, status, "%s is %s: %s", key, nb_status_name(checked.status), checked.reason);
    cr_expect(strstr(checked.reason, reason), "%s: '%s' does not say '%s'", key, checked.reason, reason);
    cr_expect_eq(checked.digests != NULL, nb_status_timed(status));
    free(checked.digests);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

Test(backward, cases_that_share_buffers_have_statistics_of_their_own) {
    struct solved s released_by(solved_release);
    struct nb_case other;
    struct nb_call call = {0}, second = {0};
    struct nb_buffers b released_by(nb_buffers_release);
    solve_key(&s, "mistakes:rmsb_f32_in_double/shape:6x10/eps:1e-5");
    other = s.c;
    other.formula.affine = NB_AFFINE_GAMMA_BETA;
    nb_case_set_kernel(&other, entry_of("mistakes", "mistakes:lnb_f32_in_double")->kernel, "mistakes");
    cr_assert_eq(nb_saved_statistics_add(&s.in, &other), 0);
    cr_assert_eq(nb_saved_statistics_add(&s.in, &s.c), 0);
    cr_expect_eq(s.in.n_saved, 2);
    const struct nb_layout_request q = {.wants = nb_buffers_wants(&s.c, false) | nb_buffers_wants(&other, false),
                                        .placement = NB_PLACE_SLAB,
                                        .rows = 6,
                                        .saved = NB_ALL_SAVED,
                                        .poison = NB_POISON_NAN};
    cr_assert_eq(nb_buffers_init(&b, &s.in, &q), 0);
    nb_buffers_attach(&b, &s.c, &call);
    nb_buffers_attach(&b, &other, &second);
    cr_expect(!call.mean && call.rstd && second.mean && second.rstd && call.rstd != second.rstd);
    for (int64_t i = 0; i < 6; i++) {
        cr_expect_eq(call.rstd[i], (float)s.oracle.truth[i].scale);
        cr_expect_lt(call.rstd[i], second.rstd[i], "a mean square is more than a variance");
    }
    cr_expect(call.dgamma && !call.dbeta && second.dgamma && second.dbeta, "RMSNorm has no beta here");
    cr_expect(call.dx && call.dy && !call.dresidual_out && !call.y && !call.beta);
    char where[200];
    cr_expect_eq(nb_buffers_verify(&b, where, sizeof where), NB_INTACT);
    call.rstd[2] += 1;
    cr_expect_eq(nb_buffers_verify(&b, where, sizeof where), NB_DAMAGED_INPUT, "statistics are inputs");
    cr_expect(strstr(where, "rstd"), "%s", where);
}

/* ---- judgement ------------------------------------------------------------------------------------------------------- */

Test(backward, each_fault_has_its_own_status) {
    static const struct {
        const char *key;
        enum nb_status status;
        const char *reason;
    } cases[] = {{"mistakes:rmsb_f32_in_double/shape:64x40", NB_OK, ""},
                 {"mistakes:rmsb_f32_in_double/shape:64x40/affine:none", NB_OK, ""},
                 {"mistakes:rmsb_f32_in_double/shape:3x1/weight_offset:1", NB_OK, ""},
                 {"mistakes:lnb_f32_in_double/shape:64x40/data:offset(1000)", NB_OK, ""},
                 {"mistakes:addlnb_f32_correct/shape:64x40", NB_OK, ""},
                 {"mistakes:bnb_f32_correct/shape:nchw:3x5x4x6", NB_OK, ""},
                 {"mistakes:bnb_f32_correct/shape:nhwc:3x4x6x5/mode:inference", NB_OK, ""},
                 {"mistakes:bnb_f32_correct/shape:40x20/affine:none", NB_OK, ""},
                 {"mistakes:lnb_f32_no_mean_term/shape:64x40", NB_INACCURATE, "elements beyond the bound"},
                 {"mistakes:rmsb_f32_no_pull_term/shape:64x40", NB_INACCURATE, "elements beyond the bound"},
                 {"mistakes:rmsb_f32_n_minus_1/shape:64x40", NB_INACCURATE, "elements beyond the bound"},
                 {"mistakes:addb_bf16_no_residual/shape:64x40", NB_INACCURATE, "elements beyond the bound"},
                 {"mistakes:rmsb_f32_dgamma_drops_row/shape:64x40", NB_INACCURATE, "dgamma["},
                 {"mistakes:lnb_f32_dbeta_weighted/shape:64x40", NB_INACCURATE, "dbeta["},
                 /* What it does not write, or reads before, is whatever was there. */
                 {"mistakes:rmsb_f32_dgamma_adds/shape:64x40", NB_READ_OUTSIDE, "gradients of the parameters differ"},
                 {"mistakes:rmsb_f32_leaves_dgamma/shape:64x40", NB_NOT_WRITTEN, "dgamma is not written"},
                 {"mistakes:rmsb_f32_leaves_dgamma/shape:64x40/affine:none", NB_OK, ""},
                 {"mistakes:rmsb_f32_changes_dy/shape:64x40", NB_CHANGED_INPUT, "input dy"},
                 {"mistakes:rmsb_f32_writes_dgamma_behind/shape:64x40", NB_WROTE_OUTSIDE, "dgamma"},
                 {"mistakes:rmsb_f32_reads_dy_behind/shape:64x40", NB_READ_OUTSIDE, ""},
                 {"mistakes:rmsb_f32_no_unit/shape:64x40", NB_RETURNED_ERROR, "n_units() declares no unit"},
                 {"mistakes:rmsb_f32_dgamma_by_range/shape:64x40", NB_NOT_REPRODUCIBLE,
                  "the gradients of the parameters differ when the call is cut into ranges"},
                 {"mistakes:rmsb_f32_truncates/shape:128x400", NB_BIASED, "one-sided errors"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        comes_out(cases[i].key, cases[i].status, cases[i].reason);
}

/* eps hardly bends the row away from dy, so that dx is what the rounding of rstd leaves. */
Test(backward, a_kernel_is_judged_by_the_rstd_that_it_declares_to_use) {
    const struct {
        const char *key;
        enum nb_status status;
        double dx;
    } cases[] = {{"in_double", NB_OK, 0.000799416136693},
                 {"own_rstd", NB_OK, 0.000799520239888},
                 {"own_rstd_without_eps", NB_INACCURATE, 0.000799520239888}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char key[200];
        double dx[4];
        struct solved s released_by(solved_release);
        snprintf(key, sizeof key,
                 "mistakes:rmsb_f32_%s/shape:1x4/data:values(1,0,0,0)/dy:parallel/eps:1e-4/affine:none", cases[i].key);
        solve_key(&s, key);
        nb_gradient_row(&s.gradient, 0, dx);
        cr_expect_float_eq(dx[0], cases[i].dx, 1e-12, "%s: %.12g", key, dx[0]);
        comes_out(key, cases[i].status, "");
    }
    comes_out("mistakes:rmsb_f32_own_rstd/shape:64x40", NB_OK, "");
    comes_out("mistakes:rmsb_f32_own_rstd/shape:64x40/dy:parallel", NB_OK, "");
    comes_out("mistakes:rmsb_f32_own_rstd/shape:64x40/data:offset(1000)/weight_offset:1", NB_OK, "");
}

/* dy as the axis says, of which the inputs and the record's key are made. */
Test(backward, dy_is_an_axis) {
    const struct {
        const char *dy;
        double first, second;
    } cases[] = {
        {"zeros", 0, 0}, {"values(3,-4)", 3, -4}, {"parallel", 5, 7}, {"tests/data/minilm_embed_x.npy", NAN, NAN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct solved s released_by(solved_release);
        const bool file = isnan(cases[i].first);
        char *given freed =
            nb_textf("mistakes:rmsb_f32_in_double/shape:2x%d/data:%s/dy:%s", file ? 384 : 4,
                     file ? "normal" : "values(5,7)", file ? "tests%2Fdata%2Fminilm_embed_x.npy" : cases[i].dy);
        solve_key(&s, given);
        char *key freed = nb_case_key(&s.c);
        cr_expect_not_null(strstr(key, "/dy:"), "%s", key);
        const float *dy = s.in.dy;
        if (!file) cr_expect(dy[0] == cases[i].first && dy[5] == cases[i].second, "%s: %g, %g", given, dy[0], dy[5]);
        cr_expect_eq(nb_inputs_is_random(&s.c), 0, "%s", given);
    }
    struct nb_case c;
    cr_assert_eq(nb_case_parse(&c, "mistakes:rmsb_f32_in_double/shape:2x4"), 0);
    nb_case_set_entry(&c, entry_of("mistakes", c.variant));
    char *key freed = nb_case_key(&c);
    cr_expect_null(strstr(key, "dy:"), "a key is as it was: %s", key);
}

static char *judged_by(const struct solved *s) {
    const struct nb_checked checked = checked_by(s);
    char *text = json_text_of(nb_accuracy_to_json(&checked.accuracy, nb_number_of(s->in.dtype)));
    free(checked.digests);
    return text;
}

/* What is exact is shared by cases of one mathematics; how a case computes is its own: here in bf16 throughout. */
Test(backward, a_shared_gradient_judges_each_case_by_its_own_arithmetic) {
    struct solved s released_by(solved_release);
    struct nb_gradient own released_by(nb_gradient_release);
    solve_key(&s, "layernorm_backward_plain_v256_bf16/shape:64x40/data:normal");
    char *usual = judged_by(&s);
    s.c.stats_dtype = NB_STATS_X;
    char *shared = judged_by(&s);
    struct solved narrow = s;
    cr_assert_eq(nb_saved_statistics_gradient(&own, &narrow.c, &s.in), 0);
    narrow.gradient = own;
    char *apart = judged_by(&narrow);
    cr_expect_str_eq(shared, apart);
    cr_expect_str_neq(shared, usual);
}

Test(backward, the_record_has_what_was_judged) {
    struct solved s released_by(solved_release);
    struct nb_accuracy read;
    solve_key(&s, "mistakes:lnb_f32_in_double/shape:64x40");
    const struct nb_checked checked = checked_by(&s);
    const struct nb_accuracy *a = &checked.accuracy;
    cr_expect(a->has_parameters && a->dgamma.n == 40 && a->dbeta.n == 40 && a->dalpha.n == 0);
    cr_expect(a->dgamma.ratio > 0 && a->dgamma.ratio <= 1 && a->dbeta.norm_u <= 1, "%g %g", a->dgamma.ratio,
              a->dbeta.norm_u);
    cr_expect_eq(nb_accuracy_parameters_ratio(a), fmax(a->dgamma.ratio, a->dbeta.ratio));
    cJSON *json = kept_json(nb_accuracy_to_json(a, nb_number_of(NB_F32)));
    cr_assert_eq(nb_accuracy_from_json(&read, json), 0);
    cr_expect(read.has_parameters && read.dgamma.n == 40 && read.dalpha.n == 0);
    cr_expect_eq(read.dbeta.ratio, a->dbeta.ratio);
    free(checked.digests);
}

Test(backward, a_gradient_is_linear_in_what_comes_in) {
    const struct nb_metamorphic whole = related_by("mistakes:addlnb_f32_correct/shape:8x40");
    static const enum nb_relation asked[] = {NB_REL_SCALE, NB_REL_NEGATE, NB_REL_ROW_ORDER,
                                             NB_REL_BATCH, NB_REL_RANGES, NB_REL_TWICE};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        cr_expect_eq(whole.relations[asked[i]].verdict, NB_HOLDS, "%s: %s", nb_relation_name(asked[i]),
                     whole.relations[asked[i]].reason);
    const struct nb_metamorphic up = related_by("mistakes:rmsb_f32_floors/shape:8x40");
    cr_expect_eq(up.relations[NB_REL_NEGATE].verdict, NB_BROKEN);
    cr_expect_eq(up.relations[NB_REL_SCALE].verdict, NB_HOLDS);
}
