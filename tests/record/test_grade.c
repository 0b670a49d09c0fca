// SPDX-License-Identifier: Apache-2.0
/* Grades of records made by hand: each figure that sets a grade is moved across its limit, both ways. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/log.h"
#include "src/lab/stress/stress.h"
#include "src/record/grade.h"
#include "tests/support/files.h"

#define USUAL "rmsnorm_a_v256_f32/shape:10x100/data:normal"

/* All 1000 elements of 10 random rows correctly rounded, within the claim. */
static struct nb_record perfect(const char *key) {
    struct nb_record r = {.status = NB_OK, .has_accuracy = true, .has_evidence = true};
    cr_assert_eq(nb_case_parse(&r.c, key), 0);
    r.c.op = NB_OP_RMSNORM;
    r.c.dtype = NB_F32;
    r.c.width = NB_256;
    nb_case_normalize(&r.c);
    r.key = nb_strdup(key);
    r.replay = nb_strdup("normbench replay");
    r.evidence = (struct nb_evidence){.n_rows = 10, .covered = true, .n = 1000, .n_correct = 1000, .worst_row = -1};
    r.evidence.bound_ratio = 0.4;
    r.evidence.max_ulp = r.evidence.componentwise_ulp = r.evidence.normwise_u = 0.5;
    r.accuracy =
        (struct nb_accuracy){.n = 1000, .n_rows = 10, .has_ratios = true, .noise_ratio = 0.5, .worst_ratio = 0.4};
    return r;
}

static enum nb_grade grade(const struct nb_record *r) {
    struct nb_graded g;
    nb_grade_case(r, &g);
    cr_assert_eq(g.grade == NB_GRADE_NONE, g.text[0] == '\0', "a grade says why: '%s'", g.text);
    return g.grade;
}

static bool declared(const struct nb_record *r) {
    struct nb_graded g;
    nb_grade_case(r, &g);
    return g.declared;
}

/* Not all rounded right: A, by componentwise error and bias. */
static struct nb_record good(void) {
    struct nb_record r = perfect(USUAL);
    r.evidence.n_correct = 900;
    return r;
}

/* Each limit from both sides: all 1000 elements rounded right for an A+, one ulp and no bias beyond chance for an A, the bound for a B,
 * twice the noise for a C, two u in norm for a D. */
Test(grade, each_limit_parts_two_grades) {
    static const struct {
        int64_t n_correct, n_beyond, n_unbounded;
        double componentwise_ulp, noise_ratio, normwise_u, bias_u, bias_sd_u;
        enum nb_grade grade;
    } rows[] = {
        {1000, 0, 0, 0.5, 0.5, 0.5, 0, 0, NB_GRADE_A_PLUS},
        {999, 0, 0, 0.5, 0.5, 0.5, 0, 0, NB_GRADE_A},
        {900, 0, 0, 1, 0.5, 0.5, 0, 0, NB_GRADE_A},
        {900, 0, 0, 1.001, 0.5, 0.5, 0, 0, NB_GRADE_B},
        {900, 0, 0, 0.5, 0.5, 0.5, -0.06, 0, NB_GRADE_B},
        {900, 0, 0, 0.5, 0.5, 0.5, 0.049, 0, NB_GRADE_A},
        {900, 0, 0, 0.5, 0.5, 0.5, 0.06, 0.1, NB_GRADE_A}, /* three standard errors of ten rows are 0.095 */
        {900, 0, 0, 50, 0.5, 0.5, 0, 0, NB_GRADE_B},
        {900, 1, 0, 50, 0.5, 0.5, 0, 0, NB_GRADE_C},
        {900, 0, 100, 50, 0.5, 0.5, 0, 0, NB_GRADE_C}, /* a predicted loss promises nothing */
        {900, 1, 0, 50, 2, 0.5, 0, 0, NB_GRADE_C},
        {900, 1, 0, 50, 2.001, 0.5, 0, 0, NB_GRADE_D},
        {900, 1, 0, 50, NAN, 0.5, 0, 0, NB_GRADE_D}, /* it needs to be known */
        {900, 1, 0, 50, 10, 2, 0, 0, NB_GRADE_D},
        {900, 1, 0, 50, 10, 2.001, 0, 0, NB_GRADE_F},
        {900, 1, 0, 50, 10, INFINITY, 0, 0, NB_GRADE_F},
        {900, 0, 0, 5000, 10, 4096, 0, 0, NB_GRADE_B}, /* sqrt(u) of f32 */
        {900, 0, 0, 5000, 10, 4097, 0, 0, NB_GRADE_D}, /* within the bound, fewer than half of the digits */
        {900, 1, 0, 5000, 10, 4097, 0, 0, NB_GRADE_F},
        {900, 0, 0, 9e9, 10, 0.1 * 0x1p24 - 1, 0, 0, NB_GRADE_D},
        {900, 0, 0, 9e9, 10, 0.1 * 0x1p24 + 1, 0, 0, NB_GRADE_F}, /* within the bound, and of no use */
        {900, 0, 0, 5000, 2, 4097, 0, 0, NB_GRADE_C},             /* nor were the inputs */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nb_record r released_by(nb_record_release) = good();
        r.evidence.n_correct = rows[i].n_correct;
        r.evidence.n_beyond = rows[i].n_beyond;
        r.evidence.n_unbounded = rows[i].n_unbounded;
        r.evidence.componentwise_ulp = rows[i].componentwise_ulp;
        r.evidence.normwise_u = rows[i].normwise_u;
        r.accuracy.noise_ratio = rows[i].noise_ratio;
        r.accuracy.bias_large_u = rows[i].bias_u;
        r.accuracy.bias_large_sd_u = rows[i].bias_sd_u;
        cr_expect_eq((int)nb_grade_parse(nb_grade_name(rows[i].grade)), (int)rows[i].grade);
        cr_expect_eq(grade(&r), rows[i].grade, "row %zu: %s, not %s", i, nb_grade_name(grade(&r)),
                     nb_grade_name(rows[i].grade));
    }
}

Test(grade, a_name_is_read_in_either_case_and_nothing_else_is) {
    cr_assert_eq(nb_grade_parse("a+"), NB_GRADE_A_PLUS);
    cr_assert_eq(nb_grade_parse("E"), NB_GRADE_NONE);
}

Test(grade, a_bias_beyond_chance_costs_the_a_on_random_rows_alone) {
    struct nb_record r released_by(nb_record_release) = good();
    snprintf(r.c.data, sizeof r.c.data, "constant");
    r.accuracy.bias_large_u = 0.4;
    cr_assert_eq(grade(&r), NB_GRADE_A, "equal values round alike");
}

Test(grade, one_nan_inf_or_lost_zero_is_an_f_however_good_the_rest_is) {
    int64_t *counts[3];
    struct nb_record r released_by(nb_record_release) = perfect(USUAL);
    counts[0] = &r.evidence.n_nan;
    counts[1] = &r.evidence.n_inf;
    counts[2] = &r.evidence.n_zero;
    for (int i = 0; i < 3; i++) {
        *counts[i] = 1;
        cr_assert_eq(grade(&r), NB_GRADE_F);
        *counts[i] = 0;
        cr_assert_eq(grade(&r), NB_GRADE_A_PLUS);
    }
}

Test(grade, a_kernel_that_does_not_come_back_or_harms_memory_fails_everywhere) {
    const enum nb_status harmful[] = {NB_WROTE_OUTSIDE, NB_READ_OUTSIDE,   NB_CHANGED_INPUT, NB_NOT_REPRODUCIBLE,
                                      NB_CRASHED,       NB_RETURNED_ERROR, NB_TIMED_OUT,     NB_NOT_WRITTEN};
    for (size_t i = 0; i < sizeof harmful / sizeof harmful[0]; i++) {
        struct nb_record r released_by(nb_record_release) = perfect(USUAL);
        r.status = harmful[i];
        cr_assert_eq(grade(&r), NB_GRADE_F);
        r.has_accuracy = r.has_evidence = false; /* its process is gone */
        cr_assert_eq(grade(&r), NB_GRADE_F);
        cr_assert(declared(&r), "no claim excuses it");
    }
}

Test(grade, wrong_statistics_beside_a_right_y_fail) {
    struct nb_record r released_by(nb_record_release) = perfect(USUAL);
    r.status = NB_INACCURATE;
    cr_assert_eq(grade(&r), NB_GRADE_F);
    r.accuracy.n_beyond = 3; /* rows with Inf, which belong to no grade */
    cr_assert_eq(grade(&r), NB_GRADE_A_PLUS);
}

Test(grade, what_was_not_run_and_rows_without_numbers_have_no_grade) {
    struct nb_record r released_by(nb_record_release) = perfect(USUAL);
    r.status = NB_SKIPPED;
    cr_assert_eq(grade(&r), NB_GRADE_NONE);
    r.status = NB_NOT_RUN;
    cr_assert_eq(grade(&r), NB_GRADE_NONE);
    r.status = NB_OK;
    r.evidence.n = r.evidence.n_correct = 0;
    cr_assert_eq(grade(&r), NB_GRADE_NONE);
}

/* ---- lines --------------------------------------------------------------------------------------------------------- */

static struct nb_results results; /* of the test, and their grades */
static struct nb_grades grades;

static void release(void) {
    nb_grades_release(&grades);
    nb_results_release(&results);
}
TestSuite(grade, .fini = release);

static void grade_all(const struct nb_record *records, size_t n) {
    results = (struct nb_results){.meta = cJSON_CreateObject(), .records = nb_alloc(n, sizeof *records), .n = n};
    memcpy(results.records, records, n * sizeof *records);
    nb_grades_make(&grades, &results, NULL);
}

Test(grade, the_worst_case_of_a_variant_and_formula_is_the_lines) {
    struct nb_record r[] = {perfect(USUAL), good(), good(), good(),
                            perfect("rmsnorm_a_v256_f32/shape:10x100/data:normal/root:div_sqrt")};
    r[1].evidence.componentwise_ulp = 3;
    r[2].evidence.n_nan = 7;
    r[2].evidence.covered = false;
    r[3].evidence.componentwise_ulp = 2; /* of equal grades the larger error is the reason */
    grade_all(r, 5);
    cr_assert_eq(grades.n, 2);
    const struct nb_grade_line *usual = &grades.lines[0], *other = &grades.lines[1];
    cr_assert_str_eq(usual->formula, "default");
    cr_assert_str_eq(other->formula, "root:div_sqrt");
    cr_assert_str_eq(usual->kernel, "rmsnorm_a");
    cr_assert_eq(usual->declared.grade, NB_GRADE_B);
    cr_assert_eq(usual->why_declared, &results.records[1]);
    cr_assert_eq(usual->all.grade, NB_GRADE_F);
    cr_assert_eq(usual->why_all, &results.records[2]);
    cr_assert_eq(usual->n_cases, 4);
    cr_assert_eq(usual->n_declared, 3);
    cr_assert_eq(usual->n_nan, 7);
    cr_assert_eq(usual->figures.componentwise_ulp, 3, "the figures are those of the declared range");
    cr_assert_float_eq(usual->correct, 2800.0 / 3000, 1e-12);
    cr_assert_eq(other->declared.grade, NB_GRADE_A_PLUS);
}

Test(grade, half_of_the_digits_are_enough_to_survive_or_an_error_that_the_inputs_explain) {
    struct nb_record r released_by(nb_record_release) = good();
    const double half = 4096; /* in u of f32: sqrt(u) relative */
    r.accuracy.noise_ratio = 8.001;
    r.evidence.normwise_u = half;
    cr_assert(nb_grade_survives(&r));
    r.evidence.normwise_u = half * 1.001;
    cr_assert_not(nb_grade_survives(&r));
    r.accuracy.noise_ratio = 8;
    cr_assert(nb_grade_survives(&r));
    r.evidence.n_inf = 1;
    cr_assert_not(nb_grade_survives(&r));
    r.evidence.n_inf = 0;
    r.status = NB_CRASHED;
    cr_assert_not(nb_grade_survives(&r));
}

Test(grade, a_bug_names_who_fails_it_and_who_survives) {
    struct nb_record r[] = {good(), perfect("rmsnorm_b_v256_f32/shape:10x100/data:normal"), good()};
    nb_strings_add(&r[0].labels, "x#1");
    nb_strings_add(&r[1].labels, "x#1");
    r[0].evidence.n_zero = 1;
    grade_all(r, 3);
    cJSON_AddItemToObject(results.meta, "labels",
                          cJSON_Parse("[{\"name\":\"x#1\",\"source\":\"x#1\"},{\"name\":\"a part of the suite\"}]"));
    const struct nb_searched searched = {.complete = true, .elapsed_s = NAN};
    cJSON *stress = kept_json(nb_stress_judge(&results, &grades, &searched));
    const cJSON *bugs = cJSON_GetObjectItemCaseSensitive(stress, "bugs"), *bug = cJSON_GetArrayItem(bugs, 0);
    cr_assert_eq(cJSON_GetArraySize(bugs), 1);
    cr_assert_str_eq(nb_json_get_text(bug, "label"), "x#1");
    cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(bug, "failed")), 1);
    cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(bug, "survived")), 1);
}

Test(grade, a_judgement_that_was_changed_is_refused) {
    struct nb_record r[] = {good()};
    struct nb_searched searched = {.complete = true, .elapsed_s = 1};
    char *dir = new_folder();
    grade_all(r, 1);
    nb_json_text(results.meta, "schema", NB_SCHEMA_VERSION);
    cr_assert_eq(nb_stress_write(kept_json(nb_stress_judge(&results, &grades, &searched)), dir), 0);
    cr_assert_eq(nb_searched_read(&searched, dir), 0);
    cJSON_Delete(searched.list);
    change_file(dir, NB_STRESS_FILE, "\"complete\": false", "\"complete\": true");
    expect_refused(nb_searched_read(&searched, dir), "another word", "delete it, and `normbench stress --resume`");
}
