// SPDX-License-Identifier: Apache-2.0
/* Exhaustive modes, whole where that is quick, else by strides: what IEEE 754 fixes, and that threads change nothing. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "src/core/bits.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/lab/exhaustive/exhaust.h"
#include "src/lab/exhaustive/root_variants.h"
#include "tests/support/files.h"

static const cJSON *row_of(const cJSON *answer, const char *field, const char *value) {
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(answer, "rows")) {
        const char *text = nb_json_get_text(row, field);
        if (text && strcmp(text, value) == 0) return row;
    }
    cr_assert_fail("no row with %s %s", field, value);
    return NULL;
}

static char *text_without_seconds(cJSON *answer) {
    cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(answer, "rows"))
        cJSON_DeleteItemFromObjectCaseSensitive(row, "seconds");
    cJSON_DeleteItemFromObjectCaseSensitive(answer, "threads");
    return json_text(answer);
}

static struct nb_exhaust_options options_of(int64_t stride, int threads) {
    nb_log_quiet(true);
    return (struct nb_exhaust_options){.threads = threads, .stride = stride, .dtype = NB_F16, .gamma = 1.3};
}

Test(exhaust, roots_by_ieee_operations_have_the_figures_that_ieee_fixes) {
    static const char *const names[] = {"double", "recip_sqrt"};
    struct nb_exhaust_options o = options_of(1, 2);
    cJSON *answer = kept_json(cJSON_CreateObject());
    o.names = names;
    o.n_names = 2;
    cr_assert_eq(nb_exhaust_rsqrt.run(&o, answer), 0);
    const cJSON *row = row_of(answer, "variant", "double");
    cr_expect_eq(nb_json_get_number(row, "inputs"), 16777216);
    cr_expect_eq(nb_json_get_number(row, "misrounded"), 0);
    cr_expect(nb_json_get_number(row, "max_ulp") <= 0.5);
    row = row_of(answer, "variant", "recip_sqrt");
    cr_expect_eq(nb_json_get_number(row, "misrounded"), 4362792);
    cr_expect_float_eq(nb_json_get_number(row, "max_ulp"), 1.490, 0.0005);
    cr_expect_str_eq(nb_json_get_text(row, "witness"), "0x3f80cab3");
}

/* The limit is that of an instruction which few CPUs have: what it should do is within it, and nearly reaches what
 * rounding alone costs; so is what it does, where it is. */
Test(exhaust, the_estimate_in_f16_is_held_to_its_limit) {
    double most = 0;
    for (uint32_t i = 0; i < 1u << 24; i += 61) {
        const double x = (double)nb_float_of(0x3f800000u + i), h = nb_round_to(x, NB_F16);
        const double r = nb_round_to(1 / sqrt(h), NB_F16), error = fabs(r * sqrt(x) - 1);
        most = error > most ? error : most;
    }
    cr_expect_lt(most, NB_RSQRTPH_LIMIT);
    cr_expect_gt(most, NB_RSQRTPH_LIMIT / 2);

    static const char *const names[] = {"rsqrtph"};
    const struct nb_root_variant *v = nb_root_variant_find(names[0]);
    cr_expect_eq(v->relative_limit, NB_RSQRTPH_LIMIT);
    if (nb_root_variant_refuses(v)) cr_skip("%s", nb_root_variant_refuses(v));
    struct nb_exhaust_options o = options_of(1, 2);
    cJSON *answer = kept_json(cJSON_CreateObject());
    o.names = names;
    o.n_names = 1;
    cr_assert_eq(nb_exhaust_rsqrt.run(&o, answer), 0);
    cr_expect(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row_of(answer, "variant", names[0]), "within_limit")));
}

Test(exhaust, roots_of_all_classes_of_inputs_are_as_promised_and_do_not_depend_on_threads) {
    char *texts[2];
    for (int k = 0; k < 2; k++) {
        struct nb_exhaust_options o = options_of(4999, k ? 3 : 1);
        cJSON *answer = kept_json(cJSON_CreateObject());
        const cJSON *row;
        int n = 0;
        o.all_inputs = true;
        cr_assert_eq(nb_exhaust_rsqrt.run(&o, answer), 0);
        cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(answer, "rows")) {
            const char *name = nb_json_get_text(row, "variant");
            cr_expect_not(cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(row, "within_limit")), "%s", name);
            if (strcmp(name, "double") != 0) continue;
            cr_expect_eq(nb_json_get_number(row, "other_kind"), 0, "%s", nb_json_get_text(row, "class"));
            n++;
        }
        cr_expect_eq(n, 8, "classes");
        texts[k] = text_without_seconds(answer);
    }
    cr_expect_str_eq(texts[0], texts[1]);
}

Test(exhaust, rows_of_one_element_through_designs_have_the_known_figures) {
    static const char *const designs[] = {"rmsnorm/store:f16/weight:f16", "rmsnorm/all:f16",
                                          "rmsnorm/store:f16/weight:f16/sqrt:f16/root:div_sqrt"};
    static const struct {
        double misrounded, max_ulp, non_finite;
    } want[] = {{2, 0.500, 0}, {38310, 2048, 0}, {8018, 1.401, 0}};
    struct nb_exhaust_options o = options_of(1, 2);
    const double eps = 1e-6;
    cJSON *answer = kept_json(cJSON_CreateObject());
    o.designs = designs;
    o.n_designs = 3;
    o.eps = &eps;
    o.n_eps = 1;
    cr_assert_eq(nb_exhaust_row1.run(&o, answer), 0);
    for (int i = 0; i < 3; i++) {
        const cJSON *row = row_of(answer, "formula", designs[i]);
        cr_expect_eq(nb_json_get_number(row, "inputs"), 63488);
        cr_expect_eq(nb_json_get_number(row, "misrounded"), want[i].misrounded, "%s", designs[i]);
        cr_expect_float_eq(nb_json_get_number(row, "max_ulp"), want[i].max_ulp, 0.001, "%s", designs[i]);
        cr_expect_eq(nb_json_get_number(row, "non_finite"), want[i].non_finite, "%s", designs[i]);
        cr_expect_eq(nb_json_get_number(row, "undecided"), 0, "%s", designs[i]);
    }
}

Test(exhaust, a_design_that_stores_another_dtype_is_refused) {
    static const char *const designs[] = {"rmsnorm/store:bf16"};
    struct nb_exhaust_options o = options_of(1, 1);
    cJSON *answer = kept_json(cJSON_CreateObject());
    o.designs = designs;
    o.n_designs = 1;
    cr_expect_eq(nb_exhaust_row1.run(&o, answer), -1);
}

Test(exhaust, pairs_by_stride_are_correct_to_half_an_ulp_and_a_bit) {
    static const char *const designs[] = {"rmsnorm/store:f16/weight:f16"};
    struct nb_exhaust_options o = options_of(248, 2);
    const double eps = 1e-6;
    cJSON *answer = kept_json(cJSON_CreateObject());
    o.designs = designs;
    o.n_designs = 1;
    o.eps = &eps;
    o.n_eps = 1;
    cr_assert_eq(nb_exhaust_row2.run(&o, answer), 0);
    const cJSON *row = row_of(answer, "formula", designs[0]);
    cr_expect_eq(nb_json_get_number(row, "n_rows"), 128 * 128);
    cr_expect(nb_json_get_number(row, "max_ulp") <= 0.5001);
    cr_expect(cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(row, "complete")));
}

Test(exhaust, every_conversion_is_right_at_a_stride) {
    struct nb_exhaust_options o = options_of(4001, 2);
    cJSON *answer = kept_json(cJSON_CreateObject());
    const cJSON *row;
    int n = 0;
    cr_assert_eq(nb_exhaust_convert.run(&o, answer), 0);
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(answer, "rows")) {
        const cJSON *within = cJSON_GetObjectItemCaseSensitive(row, "within_limit");
        cr_expect_not(cJSON_IsFalse(within), "%s", nb_json_get_text(row, "function"));
        n += cJSON_IsTrue(within);
    }
    cr_expect_geq(n, 6);
}
