// SPDX-License-Identifier: Apache-2.0
/* Derived tolerances cover the bound on ordinary and hard rows, correct kernels pass, planted mistakes are seen as promised. */
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "src/core/stats.h"
#include "src/lab/tolerance/tolerance.h"
#include "src/measure/process.h"

static int64_t interrupted_at = -1; /* step */
static int interrupt_of_test(void) { return interrupted_at >= 0 && interrupted_at-- == 0 ? SIGTERM : 0; }
#define nb_interrupted interrupt_of_test
#include "src/lab/tolerance/tolerance_run.c"
#undef nb_interrupted
#include "tests/support/sparsely.h"

static struct nb_tolerance_request request_of(const char *design, const char *data, int64_t cols, int64_t trials) {
    struct nb_tolerance_request q = {
        .data = data, .rows = 16, .cols = cols, .seed = 1, .affine = NB_N_AFFINES, .trials = trials, .alarm = 0.05};
    cr_assert_eq(nb_design_parse(&q.design, design), 0);
    return q;
}

static struct nb_tolerance run_of(const struct nb_tolerance_request *q) {
    struct nb_tolerance t;
    cr_assert_eq(nb_tolerance_run(&t, q), 0);
    return t;
}

static const struct nb_bug_result *bug_of(const struct nb_tolerance *t, const char *name) {
    for (int b = 0; b < t->n_bugs; b++)
        if (strcmp(t->bugs[b].name, name) == 0) return &t->bugs[b];
    cr_assert_fail("no mistake is called %s", name);
    return NULL;
}

static bool always(const struct nb_rate *rate) { return rate->n > 0 && rate->seen == rate->n; }

/* ---- coverage, false alarms ---------------------------------------------------------------------------------------------- */

Test(tolerance, correct_kernels_pass_on_ordinary_and_hard_rows) {
    static const struct {
        const char *design, *data;
    } cases[] = {{"rmsnorm/store:bf16", "massive"},
                 {"layernorm", "offset(1000)"},
                 {"layernorm/store:f16/eps:1e-12", "scale(0.01)"},
                 {"llama", "normal"},
                 {"l2norm/store:bf16", "sparse(0.1)"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i += sparsely()) {
        const struct nb_tolerance_request q = request_of(cases[i].design, cases[i].data, 300, 12);
        const struct nb_tolerance t = run_of(&q);
        cr_expect_gt(t.n_held_out, 0);
        cr_expect_leq((double)t.n_uncovered, 1e-3 * (double)t.n_held_out, "%s, %s: %lld of %lld", cases[i].design,
                      cases[i].data, (long long)t.n_uncovered, (long long)t.n_held_out);
        cr_expect_geq(t.n_subjects, 2);
        for (int s = 0; s < t.n_subjects; s++) {
            cr_expect_eq(t.subjects[s].alarms[NB_DERIVED].seen, 0, "%s, %s: %s, %.3g of the tolerance", cases[i].design,
                         cases[i].data, t.subjects[s].name, t.subjects[s].worst);
            cr_expect_eq(t.subjects[s].alarms[NB_DERIVED].n, 12);
            cr_expect_leq(t.subjects[s].worst, 1);
        }
    }
}

Test(tolerance, false_alarms_of_the_calibrated_tolerance_keep_to_what_was_asked_for) {
    const struct nb_tolerance_request q = request_of("rmsnorm/store:f32", "normal", 32, 150);
    const struct nb_tolerance t = run_of(&q);
    cr_expect_lt(t.calibrated_share, 0.9);
    cr_expect_eq(t.calibrated_alarm, 0.05);
    for (int s = 0; s < t.n_subjects; s++) /* the chance of more, at a rate of 5 %, is below 1e-6 */
        cr_expect_lt(t.subjects[s].alarms[NB_CALIBRATED].seen, 24, "%s", t.subjects[s].name);
}

Test(tolerance, the_reference_is_part_of_the_tolerance) {
    struct nb_tolerance_request q = request_of("rmsnorm/store:bf16", "normal", 96, 8);
    double rtol[NB_N_REFERENCE_KINDS];
    for (int kind = 0; kind < NB_N_REFERENCE_KINDS; kind++) {
        q.reference = (enum nb_reference_kind)kind;
        const struct nb_tolerance t = run_of(&q);
        rtol[kind] = t.criteria[NB_DERIVED].rtol;
        for (int s = 0; s < t.n_subjects; s++) cr_expect_eq(t.subjects[s].alarms[NB_DERIVED].seen, 0);
    }
    cr_expect_float_eq(rtol[NB_REFERENCE_EXACT] * 0x1p8, 1, 0.03);
    cr_expect_float_eq(rtol[NB_REFERENCE_ROUNDED] * 0x1p8, 2, 0.05);
    cr_expect_float_eq(rtol[NB_REFERENCE_PEER] * 0x1p8, 2, 0.05);
}

Test(tolerance, an_interrupted_run_has_what_was_counted) {
    const struct nb_tolerance_request q = request_of("rmsnorm/store:bf16", "normal", 96, 20);
    struct nb_tolerance t;
    interrupted_at = 30; /* in the calibration */
    cr_expect_eq(nb_tolerance_run(&t, &q), 128 + SIGTERM);
    cr_expect_eq(t.trials, 0);
    interrupted_at = 45; /* behind the sixth test of those that count */
    cr_expect_eq(nb_tolerance_run(&t, &q), 128 + SIGTERM);
    cr_expect_eq(t.trials, 6);
    cr_expect_eq(t.bug_trials, 6);
    cr_expect_eq(t.subjects[0].alarms[NB_DERIVED].n, 6);
    cr_expect_gt(t.subjects[0].alarms[NB_DERIVED].high, 0);
}

/* ---- mistakes ------------------------------------------------------------------------------------------------------------ */

Test(tolerance, planted_mistakes_are_seen) {
    static const char *const narrow[] = {
        "divides by n - 1",        "leaves the tail out", "truncates",         "sums in bf16",
        "other cast order",        "gamma one ulp off",   "swaps two outputs", "no gamma",
        "forgets the last output", "narrow rstd"};
    static const char *const centred[] = {"divides by n - 1", "leaves the tail out", "sums in bf16", "sums in f16",
                                          "narrow rstd",      "no Newton step",      "other mean",   "no beta",
                                          "swaps two outputs"};
    const struct nb_tolerance_request bf16 = request_of("rmsnorm/store:bf16", "normal", 384, 4),
                                      f32 = request_of("layernorm", "normal", 384, 4);
    const struct nb_tolerance a = run_of(&bf16), b = run_of(&f32);
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++)
        cr_expect(always(&bug_of(&a, narrow[i])->caught[NB_DERIVED]), "bf16: %s", narrow[i]);
    for (size_t i = 0; i < sizeof centred / sizeof centred[0]; i++)
        cr_expect(always(&bug_of(&b, centred[i])->caught[NB_DERIVED]), "layernorm f32: %s", centred[i]);
    cr_expect_eq(bug_of(&a, "truncates")->caught[4].seen, 0, "torch's default sees no truncation in bf16");
}

/* Against a rounded reference a truncated output is within one ulp; the side that the errors take is not. */
Test(tolerance, the_mean_error_sees_a_truncation_that_no_line_can_see) {
    struct nb_tolerance_request q = request_of("rmsnorm/store:bf16", "normal", 384, 16);
    q.reference = NB_REFERENCE_ROUNDED;
    const struct nb_tolerance t = run_of(&q);
    const struct nb_bug_result *bug = bug_of(&t, "truncates");
    cr_expect_eq(bug->caught[NB_DERIVED].seen, 0);
    cr_expect(always(&bug->caught[NB_MEAN_ERROR_TEST]));
    for (int s = 0; s < t.n_subjects; s++) cr_expect_leq(t.subjects[s].alarms[NB_MEAN_ERROR_TEST].seen, 1);
}

/* ---- parts --------------------------------------------------------------------------------------------------------------- */

Test(tolerance, nothing_but_an_error_at_0_gives_no_slope) {
    struct nb_cloud c = {0};
    double rtol, atol;
    cloud_add(&c, 0, 0.5);
    cloud_line(&c, &rtol, &atol);
    cr_expect(rtol == 0 && atol == 0.5);
    free(c.largest);
}

/* Clopper-Pearson, as published tables have them. */
Test(tolerance, proportions_have_exact_bounds) {
    cr_expect_float_eq(nb_proportion_upper(0, 100, 0.95), 1 - pow(0.05, 0.01), 1e-9);
    cr_expect_float_eq(nb_proportion_lower(100, 100, 0.95), pow(0.05, 0.01), 1e-9);
    cr_expect_float_eq(nb_proportion_upper(5, 20, 0.95), 0.45558, 1e-4);
    cr_expect_float_eq(nb_proportion_lower(5, 20, 0.95), 0.10408, 1e-4);
    cr_expect(nb_proportion_upper(0, 0, 0.95) == 1 && nb_proportion_lower(0, 0, 0.95) == 0);
    cr_expect_eq(nb_proportion_upper(7, 7, 0.95), 1);
}

Test(tolerance, criteria_compare_as_the_functions_they_are_named_after) {
    double want[] = {1, -2, 0, 4}, allowed[] = {1, 1, 1, 1}, without_second[] = {1, INFINITY, 1, 1};
    const double near[] = {1.0009, -2, 0, 4}, far[] = {1, -2, 2e-5, 4}, not [] = {1, NAN, 0, 4};
    struct nb_tolerance_test all = {.rows = {.rows = 1, .cols = 4}, .n = 4, .want = want, .allowed = allowed},
                             part = all;
    part.allowed = without_second;
    struct nb_tolerance t = {0};
    set_criteria(&t, NB_NUM_F16);
    const struct nb_criterion *torch = &t.criteria[NB_N_OWN_CRITERIA], *nmse = torch + 3;
    cr_expect_not(criterion_alarms(torch, NB_NUM_F16, &all, near));
    cr_expect(criterion_alarms(torch, NB_NUM_F16, &all, far));
    cr_expect(criterion_alarms(torch, NB_NUM_F16, &all, not ));
    cr_expect(criterion_alarms(nmse, NB_NUM_F16, &all, not ));
    cr_expect_not(criterion_alarms(torch, NB_NUM_F16, &part, not ));
    cr_expect_not(criterion_alarms(nmse, NB_NUM_F16, &all, near));
    cr_expect_float_eq(mean_error(&all, near), 0.0003, 1e-9);
}
