// SPDX-License-Identifier: Apache-2.0
/* Paired ratios of any two cases of a journal, and a timing claim from a doctored journal to its verdict. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "src/claims/claims.h"
#include "src/claims/experiment_timing.c"
#include "src/core/case.h"
#include "src/core/text.h"
#include "src/record/record.h"
#include "tests/support/files.h"
#include "tests/support/runs.h"

TestSuite(claims_timing, .init = quiet);

#define RMS "rmsnorm_composed_v256_f32/shape:64x64"
#define LN "layernorm_composed_v256_f32/shape:64x64"
#define PRMS "prmsnorm_composed_v256_f32/shape:64x64"

/* Two parts of one group, which share LayerNorm as their reference: RMSNorm in the first, pRMSNorm in the second. Times of the three
 * blocks drift by the same factor, which pairs do not see; shift moves single launches of the other arm. together: how many cases share a
 * process. */
static char *run_of(int launches, double rms_ns, double prms_ns, double shift, int together) {
    static const char *const variants[] = {"rmsnorm_composed_v256_f32", "layernorm_composed_v256_f32",
                                           "prmsnorm_composed_v256_f32"};
    static const char *const keys[][2] = {{LN, RMS}, {LN, PRMS}};
    struct nb_strbuf text = {0};
    nb_strbuf_add(&text, run_line_of(variants, 3,
                                     "[{\"index\":0,\"part\":0,\"keys\":[\"" LN "\",\"" RMS
                                     "\"],\"reference\":0,\"labels\":[[0],[0]]},{\"index\":0,\"part\":1,\"keys\":"
                                     "[\"" LN "\",\"" PRMS "\"],\"reference\":0,\"labels\":[[0],[0]]}],"
                                     "\"labels\":[{\"name\":\"mine/norm\",\"source\":null,\"text\":null}]",
                                     "[]", "null", launches));
    for (int part = 0; part < 2; part++) add_check(&text, part, keys[part], 2);
    for (int l = 0; l < launches; l++)
        for (int part = 0; part < 2; part++) {
            const double drift = 1 + 0.5 * l, t = drift * (part ? prms_ns : rms_ns) * (1 + shift * (l % 2 ? 1 : -1));
            const double samples[][3] = {{1000 * drift, 3000 * drift, 2000 * drift}, {t, NAN, 2 * t}};
            for (int i = 0; i < 2; i += together) add_launch(&text, part, l, keys[part] + i, together, samples[i], 3);
        }
    add_end(&text);
    return folder_of(&text);
}

static char *run_with(int launches, double rms_ns, double prms_ns, double shift) {
    return run_of(launches, rms_ns, prms_ns, shift, 2);
}

Test(claims_timing, cases_that_were_launched_apart_are_no_pairs) {
    char *dir = run_of(8, 700, 350, 0, 1);
    struct nb_sample_table s released_by(nb_sample_table_release);
    cr_assert_eq(nb_sample_table_read(&s, dir), 0);
    cr_expect(isnan(nb_paired_ratio(&s, RMS, LN, NULL).ratio.value));
    cr_expect(isnan(nb_paired_ratio(&s, PRMS, RMS, NULL).ratio.value));
}

/* ---- a claim ---- */

static const char claim_text[] =
    "{\"title\":\"t\",\"statement\":\"s\",\"scope\":\"s\",\"sources\":[{\"cite\":\"c\"}],"
    "\"experiments\":{\"norm\":{\"kind\":\"timing\",\"blocks\":[{\"op\":\"rmsnorm\"}],"
    "\"compare\":[{\"of\":{\"kernel\":\"rmsnorm_composed\"},\"against\":{\"kernel\":\"layernorm_composed\"},"
    "\"share\":0.5},{\"of\":{\"kernel\":\"rmsnorm_composed\"},\"against\":{\"kernel\":\"layernorm_composed\"},"
    "\"and\":{\"of\":{\"kernel\":\"prmsnorm_composed\"},\"against\":{\"kernel\":\"layernorm_composed\"}},"
    "\"tags\":{\"part\":\"both\"}},{\"of\":{\"kernel\":\"dyt*\"},\"against\":{\"kernel\":\"layernorm*\"},"
    "\"tags\":{\"part\":\"none\"}}]}},\"readings\":[{\"id\":\"cut\",\"text\":\"t\",\"experiment\":\"norm\","
    "\"expect\":[{\"figure\":\"cut\",\"form\":\"between\",\"least\":0.2,\"most\":0.4,\"where\":{\"fits\":\"L2\","
    "\"style\":\"composed\",\"cols\":\">=64\",\"part\":\"both\"}}]}]}";

Test(claims_timing, a_doctored_journal_decides_the_verdict) {
    static const struct {
        double rms_ns, prms_ns, shift;
        int launches;
        enum nb_claim_verdict verdict;
    } cases[] = {
        {700, 700, 0, 8, NB_REPRODUCED},
        {950, 950, 0, 8, NB_NOT_REPRODUCED},
        {700, 700, 0, 5, NB_UNDECIDED_HERE},
        {700, 700, 0.5, 8, NB_UNDECIDED_HERE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *dir = run_with(cases[i].launches, cases[i].rms_ns, cases[i].prms_ns, cases[i].shift);
        struct nb_claim claim released_by(nb_claim_release);
        struct nb_claim_result result released_by(nb_claim_result_release);
        cr_expect_eq(claim_on_run(claim_text, dir, &claim, &result), cases[i].verdict, "case %zu: %s, %s", i,
                     nb_claim_verdict_names[result.verdict], result.reason);
    }
}

static void read_sides(struct nb_sides *sides, const char *json) {
    struct nb_jsonc file released_by(nb_jsonc_release);
    *sides = (struct nb_sides){{0}, {0}};
    cr_assert_eq(nb_jsonc_parse(&file, "x", json, strlen(json)), 0);
    cr_assert_eq(nb_selector_read(&file, cJSON_GetArrayItem(file.root, 0), &sides->of), 0);
    cr_assert_eq(nb_selector_read(&file, cJSON_GetArrayItem(file.root, 1), &sides->against), 0);
}

/* Selectors that name a formula compare a kernel with itself, not with the first one that has the other formula. */
Test(claims_timing, a_formula_is_compared_within_its_kernel) {
    static const char *const keys[] = {"layernorm_composed_v256_f32/shape:64x64/root:div_sqrt",
                                       "layernorm_composed_v256_f32/shape:64x64/root:mul_recip",
                                       "rmsnorm_composed_v256_f32/shape:64x64/root:div_sqrt",
                                       "rmsnorm_composed_v256_f32/shape:64x64/root:mul_recip"};
    enum { N = sizeof keys / sizeof keys[0] };
    struct nb_record records[N];
    struct nb_results results = {.records = records, .n = N};
    struct timed_cases cases released_by(timed_cases_release);
    struct nb_sides sides;
    for (size_t i = 0; i < N; i++) {
        records[i] = (struct nb_record){.key = strdup(keys[i]), .status = NB_OK};
        nb_case_init(&records[i].c);
        cr_assert_eq(nb_case_parse(&records[i].c, keys[i]), 0);
        records[i].c.op = i < 2 ? NB_OP_LAYERNORM : NB_OP_RMSNORM;
        nb_strings_add(&records[i].labels, "mine/root");
    }
    timed_cases_init(&cases, &results, "mine/root");
    read_sides(&sides, "[{\"root\":\"mul_recip\"},{\"root\":\"div_sqrt\"}]");
    cr_expect_eq(timed_against(&cases, &sides, 1), 0);
    cr_expect_eq(timed_against(&cases, &sides, 3), 2);
    nb_selector_release(&sides.of);
    nb_selector_release(&sides.against);
    for (size_t i = 0; i < N; i++) nb_record_release(&records[i]);
}

Test(claims_timing, both_conventions_shares_and_sums) {
    char *dir = run_with(8, 700, 350, 0);
    struct nb_claim claim released_by(nb_claim_release);
    struct nb_claim_result result released_by(nb_claim_result_release);
    claim_on_run(claim_text, dir, &claim, &result);
    const struct nb_findings *f = &result.findings[0];
    cr_expect_float_eq(finding_of(f, "cut", "")->value.value, 0.3, 1e-9);
    cr_expect_float_eq(finding_of(f, "ratio", "")->value.value, 1 / 0.7, 1e-9);
    cr_expect_float_eq(finding_of(f, "step_cut", "")->value.value, 0.15, 1e-9);
    cr_expect_float_eq(finding_of(f, "cut", "part=both")->value.value, (0.3 + 0.65) / 2, 1e-9,
                       "both take LayerNorm's time once");
    cr_expect_str_eq(nb_finding_get(finding_of(f, "cut", ""), "against"), "layernorm_composed");
    cr_expect(finding_of(f, "cut", "part=none")->reason, "a comparison without cases has a reason");
}
