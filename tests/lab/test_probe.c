// SPDX-License-Identifier: Apache-2.0
/* What probes say of our own kernels, whose insides are known, and of black boxes made for the purpose. */
#include <criterion/criterion.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/lab/probe/probe.h"
#include "tests/support/cases.h"
#include "tests/support/files.h"

static cJSON *result_of(const struct nb_entry *entry, struct nb_formula formula) {
    struct nb_case c;
    cr_assert_eq(probe_case(&c, entry, formula), 0, "%s", entry->id);
    return kept_json(nb_probe_kernel(&c, entry, NULL, 0));
}

/* Null: undetermined or not asked. */
static const char *value_of_answer(const cJSON *result, const char *question) {
    return nb_json_get_text(nb_json_find(nb_json_get(result, "answers"), "question", question), "value");
}

/* ---- our own kernels ---- */

enum { RAW = NB_ROOT_RSQRT_RAW, NEWTON = NB_ROOT_RSQRT_NR, DIV = NB_ROOT_DIV_SQRT, RECIP = NB_ROOT_MUL_RECIP };
enum { GAMMA = NB_AFFINE_GAMMA, BOTH = NB_AFFINE_GAMMA_BETA };
/* One answer, and what the summary says behind the kernel's name: as in kernels/rows/row.h, reduce.h. */
// clang-format off
static const struct {
    const char *kernel;
    struct nb_formula formula;
    const char *question, *value, *summary;
} ours[] = {
    {"rmsnorm_twopass_scalar_f16", {.root = NEWTON, .weight_offset = 1, .affine = GAMMA, .param = NB_PARAM_X}, "offset_dtype", "f32 or wider",
     "sums in f32, eps inside in f32, rsqrt_nr, cast after weight, weight offset 1, rounding nearest"},
    {"rmsnorm_twopass_scalar_bf16", {.root = DIV, .eps_place = NB_EPS_OUTSIDE, .cast = NB_CAST_BEFORE, .affine = GAMMA}, "cast", "before",
     "sums in f32, eps outside in f32, div_sqrt, cast before weight, rounding nearest"},
    {"rmsnorm_lowp_scalar_bf16", {.root = RECIP}, "inf", "the others are 0, itself NaN",
     "sums in bf16, eps inside in bf16, rounding nearest"},
    {"rmsnorm_composed_lowp_scalar_f16", {.root = RECIP, .affine = BOTH}, "statistics_dtype", "f16",
     "sums in f32 or wider, eps inside, cast before weight, beta: rounded to x's dtype, then added, rounding nearest"},
    {"l2norm_twopass_scalar_f32", {.root = RECIP}, "eps_added_to", "the sum",
     "sums in f32, eps inside in f32, mul_recip, rounding nearest"},
    {"add_layernorm_twopass_scalar_f32", {.root = RECIP, .eps_place = NB_EPS_CLAMP, .affine = BOTH}, "inf", "the whole row is NaN",
     "eps clamp in f32, mul_recip, beta: fma, rounding nearest"},
    {"layernorm_composed_scalar_f32", {.root = RECIP, .affine = BOTH}, "affine_fma", "rounded, then added",
     "sums in f32, twopass variance, eps inside in f32, mul_recip, beta: rounded, then added, rounding nearest"},
    {"layernorm_onepass_scalar_f32", {.root = RECIP}, "variance", "onepass",
     "sums in f32, onepass variance, eps inside in f32, mul_recip, rounding nearest"},
    {"layernorm_corrected_scalar_f32", {.root = RECIP}, "variance", "corrected",
     "sums in f32, corrected variance, eps inside in f32, mul_recip, rounding nearest"},
    {"layernorm_shifted_scalar_f32", {.root = RECIP}, "variance", "shifted",
     "shifted variance, eps inside in f32, mul_recip, rounding nearest"},
    {"layernorm_welford_scalar_f32", {.root = DIV, .eps_place = NB_EPS_OUTSIDE, .affine = BOTH}, "nan", "the whole row is NaN",
     "welford variance, eps outside in f32, div_sqrt, beta: fma, rounding nearest"},
    {"rmsnorm_twopass_scalar_bf16", {.root = RECIP, .cast = NB_CAST_BEFORE, .weight_offset = 1, .affine = BOTH}, "offset_dtype", "bf16",
     "sums in f32, eps inside in f32, mul_recip, cast before weight, weight offset 1, rounding nearest"},
    {"layernorm_twopass_scalar_f16", {.root = RECIP, .affine = BOTH}, "affine_fma", "fma",
     "sums in f32, twopass variance, eps inside in f32, mul_recip, cast after weight, beta: fma, rounding nearest"},
    {"prmsnorm_twopass_scalar_f32", {.root = RECIP}, "eps_added_to", "the mean",
     "sums in f32, eps inside in f32, mul_recip, rounding nearest"},
    {"add_rmsnorm_twopass_scalar_bf16", {.root = DIV, .eps_place = NB_EPS_CLAMP, .affine = GAMMA, .round_sum = 1}, "eps_place", "clamp",
     "eps clamp in f32, div_sqrt, cast after weight, rounding nearest"},
#if defined(__x86_64__)
    {"rmsnorm_twopass_scalar_f32", {.root = RAW, .weight_offset = 1, .affine = BOTH}, "root_instruction", "rsqrtps (rsqrtps)",
     "sums in f32, eps inside in f32, rsqrt_raw, weight offset 1, rounding nearest"},
    {"rmsnorm_twopass_scalar_f32", {.root = NEWTON, .affine = BOTH}, "root_instruction", "rsqrtps_newton (rsqrtps, r + r/2 (1 - x r r) by FMA)",
     "sums in f32, eps inside in f32, rsqrt_nr, rounding nearest"},
#endif
};
// clang-format on

Test(probe, tells_what_our_kernels_do) {
    cr_assert_eq(nb_registry_load_builtin(), 0);
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        const struct nb_entry *entry = nb_registry_find(ours[i].kernel);
        cr_assert_not_null(entry, "%s", ours[i].kernel);
        const cJSON *result = result_of(entry, ours[i].formula);
        const char *value = value_of_answer(result, ours[i].question);
        cr_expect_str_eq(nb_json_get_text(result, "summary"), ours[i].summary, "%s", ours[i].kernel);
        cr_expect(value && strcmp(value, ours[i].value) == 0, "%s: %s is %s", ours[i].kernel, ours[i].question,
                  value ? value : "undetermined");
    }
}

/* ---- black boxes ---- */

/* value null: it must be undetermined. */
struct expected {
    const char *kernel, *question, *value;
};
static const struct expected expected[] = {
    {"mistakes:rms_f32_eps_clamp", "accumulator", NULL},
    {"mistakes:rms_f32_eps_clamp", "eps_place", "clamp inside: 1/sqrt(max(v, eps))"},
    {"mistakes:rms_f32_eps_clamp", "nan", "hidden from the others"},
    {"mistakes:rms_f32_eps_over_n", "accumulator", "f32"},
    {"mistakes:rms_f32_eps_over_n", "eps_place", "inside"},
    {"mistakes:rms_f32_eps_over_n", "eps_added_to", "the sum"},
    {"mistakes:rms_f32_eps_forgotten", "eps_place", "nowhere: it has no effect"},
    {"mistakes:rms_f32_root_magic", "root", "quake"},
    {"mistakes:rms_f32_root_magic", "root_instruction", "quake2 (the same, 2 steps)"},
    {"mistakes:rms_f32_nan_to_zero", "nan", "the others are 0"},
    {"mistakes:rms_f32_gamma_forgotten", "weight_offset", "ignored"},
    {"mistakes:rms_f32_gamma_forgotten", "root", "mul_recip"},
    {"mistakes:rms_bf16_truncates", "rounding", "towards zero"},
    {"mistakes:rms_f32_floors", "rounding", "down"},
    {"mistakes:ln_bf16_floors", "rounding", "down"},
    {"mistakes:rms_bf16_rounds_up", "rounding", "up"},
    {"mistakes:rms_f32_last_bit_by_turn", "root", NULL},
    {"mistakes:rms_f32_last_bit_by_turn", "rounding", NULL},
    {"mistakes:rms_bf16_truncates_before", "cast", "before"},
    {"mistakes:ln_f32_variance_about_last", "variance", "shifted"},
#if defined(__x86_64__) || defined(__aarch64__)
    {"mistakes:rms_f32_flushes_all", "subnormal_inputs", "flushed"},
    {"mistakes:rms_f32_flushes_all", "subnormal_outputs", "flushed"},
    {"mistakes:rms_f32_flushes_all", "subnormal_squares", "flushed"},
#endif
};

static const cJSON *asked(const char *kernel) {
    const struct nb_entry *entry = nb_registry_find(kernel);
    cr_assert_not_null(entry, "%s", kernel);
    const bool weighs = entry->kernel->formulas.affines == 1u << NB_AFFINE_GAMMA || strstr(kernel, "gamma");
    return result_of(entry, (struct nb_formula){.root = NB_ROOT_MUL_RECIP,
                                                .affine = weighs ? NB_AFFINE_GAMMA : NB_AFFINE_NONE,
                                                .cast = weighs ? NB_CAST_BEFORE : NB_CAST_AFTER});
}

Test(probe, tells_what_black_boxes_do) {
    const cJSON *result = NULL;
    cr_assert_eq(nb_registry_load_builtin(), 0);
    cr_assert_eq(nb_registry_load(plugin_path("mistakes")), 0);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const struct expected *e = &expected[i];
        if (i == 0 || strcmp(e->kernel, e[-1].kernel) != 0) result = asked(e->kernel);
        const char *value = value_of_answer(result, e->question);
        const bool right = e->value ? value && strcmp(value, e->value) == 0 : !value;
        cr_expect(right, "%s: %s is %s, should be %s", e->kernel, e->question, value ? value : "undetermined",
                  e->value ? e->value : "undetermined");
    }
}

Test(probe, differences_are_causes_in_words) {
    static const char *const causes[][2] = {
        {"mistakes:rms_f32_eps_clamp", "eps is a clamp inside: 1/sqrt(max(v, eps))"},
        {"mistakes:rms_f32_gamma_forgotten", "gamma has no effect"},
        {"mistakes:rms_f32_floors", "results are rounded down"},
        {"mistakes:rms_f32_correct", ""}};
    cr_assert_eq(nb_registry_load(plugin_path("mistakes")), 0);
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        struct nb_strbuf text released_by(nb_strbuf_release) = nb_strbuf_empty();
        struct nb_case c;
        nb_case_init(&c);
        nb_case_set_entry(&c, nb_registry_find(causes[i][0]));
        nb_probe_differences(&c, asked(causes[i][0]), false, &text);
        cr_expect_str_eq(text.text, causes[i][1], "%s: %s", causes[i][0], text.text);
    }
}

Test(probe, says_of_sums_that_are_undetermined_why) {
    struct nb_strbuf said released_by(nb_strbuf_release) = {0};
    cr_assert_eq(nb_registry_load_builtin(), 0);
    cr_assert_eq(nb_registry_load(plugin_path("mistakes")), 0);
    nb_probe_undetermined(asked("mistakes:rms_f32_eps_over_n"), &said);
    cr_expect_eq(said.len, 0, "%s", said.text);
    nb_probe_undetermined(asked("mistakes:rms_f32_eps_clamp"), &said);
    cr_expect(said.text && strncmp(said.text, "; undetermined: sums (", 22) == 0, "%s", said.text);
}

Test(probe, says_why_a_kernel_that_returns_an_error_was_not_asked) {
    cr_assert_eq(nb_registry_load(plugin_path("error")), 0);
    const struct nb_entry *entry = nb_registry_at(nb_registry_size() - 1);
    const cJSON *result = result_of(entry, (struct nb_formula){.root = NB_ROOT_MUL_RECIP});
    cr_expect_str_eq(nb_json_get_text(result, "status"), "failed");
    cr_expect_str_eq(nb_json_get_text(result, "reason"), "run() returned 7");
}
