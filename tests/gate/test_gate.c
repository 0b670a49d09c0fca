// SPDX-License-Identifier: Apache-2.0
/* What the gate compares: builds that stay apart whatever they are called (those that cannot are tests/cli/gate.sh's); accuracy and budgets. Every
 * test is a process of its own. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/core/guard.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/gate/gate.h"
#include "src/gate/gate_kernel.c"
#include "src/gate/gate_run.c"
#include "tests/support/files.h"

static const struct nb_entry *build_entry(int build, const char *variant) {
    char id[100];
    snprintf(id, sizeof id, "%s:%s", nb_build_names[build], variant);
    return nb_registry_find(id);
}

/* y[0] of a row of ones, of a kernel that is loaded in the guard. */
struct trial {
    char id[NB_VARIANT_MAX];
    float y;
};
static void run_trial(void *arg) {
    struct trial *t = arg;
    const struct nb_entry *entry = nb_registry_find(t->id);
    float x[8] = {1, 1, 1, 1, 1, 1, 1, 1}, y[8] = {0};
    const struct nb_call call = {
        .struct_size = sizeof call, .rows = 1, .cols = 8, .x = x, .y = y, .x_stride = 8, .y_stride = 8};
    t->y = entry && entry->kernel->run(&call, 0, 0, 1) == 0 ? y[0] : -1;
}
static float result_of(const struct nb_entry *entry) {
    struct trial t;
    snprintf(t.id, sizeof t.id, "%s", entry->id);
    const char *why = nb_guarded(run_trial, &t, sizeof t, 10);
    cr_assert_null(why, "it %s", why);
    return t.y;
}

static void expect_apart(const char *variant) {
    for (int b = 0; b < NB_N_BUILDS; b++) {
        cr_assert(build_entry(b, variant), "%s has no %s", nb_build_names[b], variant);
        for (int other = 0; other < b; other++)
            cr_expect_str_neq(build_entry(b, variant)->code_file, build_entry(other, variant)->code_file);
    }
}

static void compare(const char *baseline, const char *candidate, const char *variant) {
    struct nb_gate_builds builds released_by(nb_gate_builds_release);
    cr_assert_eq(nb_gate_builds_init(&builds, &baseline, 1, &candidate, 1, true), 0);
    expect_apart(variant);
}

Test(gate, one_file_on_both_sides_is_two_handles) {
    char *file = plugin_path("gate_old");
    compare(file, file, "gated_steady_f32");
}

Test(gate, links_to_one_file_are_two_handles) {
    char *file = plugin_path("gate_old"), *dir = new_folder();
    char *hard = nb_path_join(dir, "hard.so"), *soft = nb_path_join(dir, "soft.so"), *absolute = realpath(file, NULL);
    size_t n;
    char *bytes = nb_file_read(file, 1 << 24, &n), *original = nb_path_join(dir, "original.so");
    cr_assert_eq(nb_file_write(original, bytes, n), 0);
    cr_assert_eq(link(original, hard), 0);
    cr_assert_eq(symlink(absolute, soft), 0);
    compare(original, hard, "gated_steady_f32");
    nb_registry_release();
    compare(file, soft, "gated_steady_f32");
    free(hard), free(soft), free(absolute), free(bytes), free(original);
}

/* Both export gate_test_scale() and let the loader bind it. */
Test(gate, equal_names_in_two_builds_stay_apart) {
    char *old = plugin_path("gate_global_old"), *new = plugin_path("gate_global_new");
    const char *baseline = old, *candidate = new;
    struct nb_gate_builds builds released_by(nb_gate_builds_release);
    cr_assert_eq(nb_gate_builds_init(&builds, &baseline, 1, &candidate, 1, true), 0);
    expect_apart("gated_global_f32");
    cr_expect_eq(result_of(build_entry(NB_BUILD_BASELINE, "gated_global_f32")), 1);
    cr_expect_eq(result_of(build_entry(NB_BUILD_CONTROL, "gated_global_f32")), 1);
    cr_expect_eq(result_of(build_entry(NB_BUILD_CANDIDATE, "gated_global_f32")), 1.001f);
}

Test(gate, an_arm_with_fewer_layouts_repeats_them) {
    const char *good = plugin_path("gate_old"), *layouts[] = {good, good};
    struct nb_gate_builds builds released_by(nb_gate_builds_release);
    cr_expect_eq(nb_gate_builds_init(&builds, layouts, 2, &good, 1, true), 0);
    cr_expect_eq(builds.n_layouts, 2);
    expect_apart("gated_steady_f32");
}

Test(gate, a_build_that_is_replaced_meanwhile_changes_nothing) {
    char *file = plugin_path("gate_global_old"), *dir = new_folder(), *mine = nb_path_join(dir, "mine.so");
    size_t n;
    char *bytes = nb_file_read(file, 1 << 24, &n);
    struct nb_gate_builds builds released_by(nb_gate_builds_release);
    cr_assert_eq(nb_file_write(mine, bytes, n), 0);
    const char *arms[] = {mine};
    cr_assert_eq(nb_gate_builds_init(&builds, arms, 1, arms, 1, true), 0);
    FILE *f = fopen(mine, "r+b"); /* in place: what is mapped would change */
    cr_assert(f);
    for (size_t i = 0; i < n; i++) fputc(0xcc, f);
    fclose(f);
    cr_expect_eq(result_of(build_entry(NB_BUILD_CANDIDATE, "gated_global_f32")), 1);
    for (int b = 0; b < NB_N_BUILDS; b++) {
        size_t length;
        char *copy freed = nb_file_read(builds.files[0][b], 1 << 24, &length);
        cr_expect(copy && length == n && memcmp(copy, bytes, n) == 0, "the copy for the workers changed");
    }
    free(mine), free(bytes);
}

/* ---- accuracy ----------------------------------------------------------------------------------------------------------- */

Test(gate, accuracy_has_margins) {
    const struct nb_accuracy good = {.max_ulp = 2, .bias_u = 0.01};
    struct nb_accuracy other = good;
    cr_expect_null(gate_less_accurate(&good, &other));
    other.max_ulp = 2.25; /* 2 * 1.1 + 0.1 is the most */
    cr_expect_null(gate_less_accurate(&good, &other));
    other.max_ulp = 2.35;
    cr_expect(strstr(gate_less_accurate(&good, &other), "ulp"));
    cr_expect_null(gate_less_accurate(&other, &good), "better is not worse");
    other = good;
    other.bias_u = -0.07;
    cr_expect(strstr(gate_less_accurate(&good, &other), "bias"));
    other = good;
    other.nan_unexpected = 1;
    cr_expect(strstr(gate_less_accurate(&good, &other), "NaN"));

    /* Of a gradient the largest error is chance, what all elements are off by is not. */
    struct nb_accuracy gradient = {.max_ulp = 4000, .p99_ulp = 20, .has_parameters = true};
    gradient.dgamma = (struct nb_parameter_error){.n = 8, .norm_u = 0.7};
    other = gradient;
    other.max_ulp = 16000;
    other.dgamma.norm_u = 1.4;
    cr_expect_null(gate_less_accurate(&gradient, &other));
    other.p99_ulp = 25;
    cr_expect(strstr(gate_less_accurate(&gradient, &other), "99th percentile"));
    other.p99_ulp = 20;
    other.dgamma.norm_u = 3;
    cr_expect(strstr(gate_less_accurate(&gradient, &other), "dgamma"));
}

/* ---- budgets ------------------------------------------------------------------------------------------------------------ */

static struct nb_gate_case counted(double baseline, double candidate) {
    static char key[] = "rmsnorm_a_v256_f32/shape:4x8";
    struct nb_gate_case c = {.key = key};
    c.instructions[NB_BUILD_BASELINE] = baseline;
    c.instructions[NB_BUILD_CANDIDATE] = candidate;
    return c;
}

Test(gate, a_count_above_its_budget_is_a_regression) {
    static char all[] = "*", other[] = "layernorm_*", mine[] = "rmsnorm_*_f32";
    struct nb_instruction_budget budgets[] = {{other, 1, false}, {mine, 0.02, true}, {all, 2000, false}};
    const struct nb_gate g = {.settings = {.budgets = budgets, .n_budgets = 3}};
    struct nb_gate_case c = counted(1000, 1020);
    gate_keep_budget(&g, &c);
    cr_expect(c.verdict == NB_VERDICT_NONE && !c.over_budget, "a budget may be used up");
    c = counted(1000, 1021);
    gate_keep_budget(&g, &c);
    cr_expect(c.verdict == NB_VERDICT_REGRESSION && c.over_budget);
    HAS(c.reason, "1021", "+2.10%");
    c = counted(2001, 2001);
    gate_keep_budget(&g, &c);
    cr_expect(c.verdict == NB_VERDICT_REGRESSION && strstr(c.reason, "allows 2000"), "%s", c.reason);
    cr_expect(gate_has_budget(&g, &c, true));
    budgets[2].filter = other;
    cr_expect_not(gate_has_budget(&g, &c, true));
    cr_expect(gate_has_budget(&g, &c, false));
}

Test(gate, nothing_passes_whose_budget_was_not_looked_at) {
    static char all[] = "*";
    struct nb_instruction_budget budget = {all, 0.02, true};
    struct nb_gate g = {.settings = {.budgets = &budget, .n_budgets = 1}};
    struct nb_gate_case c = counted(NAN, 100);
    snprintf(c.uncounted, sizeof c.uncounted, "a debugger takes the traps");
    gate_keep_budget(&g, &c);
    cr_expect_eq(c.verdict, NB_VERDICT_NONE);
    c.verdict = NB_VERDICT_REGRESSION;
    gate_settle_budget(&g, &c);
    cr_expect_eq(c.verdict, NB_VERDICT_REGRESSION, "what is known stands");
    c.verdict = NB_VERDICT_PASS;
    gate_settle_budget(&g, &c);
    cr_expect(c.verdict == NB_VERDICT_INCONCLUSIVE && strstr(c.reason, "debugger"), "%s", c.reason);
    c.verdict = NB_VERDICT_IDENTICAL; /* the same code keeps to a share of itself */
    gate_settle_budget(&g, &c);
    cr_expect_eq(c.verdict, NB_VERDICT_IDENTICAL);
    g.settings.n_budgets = 0;
    c.verdict = NB_VERDICT_PASS;
    gate_settle_budget(&g, &c);
    cr_expect_eq(c.verdict, NB_VERDICT_PASS);
}

/* Fewer pairs in a launch, where each of the screening's says more than twice the time by both of its figures. */
Test(gate, a_candidate_far_beyond_any_margin_is_timed_by_fewer_pairs) {
    struct nb_gate_launch screen[2] = {{.ratio = log(3), .ratio_min = log(2.5)},
                                       {.ratio = log(2.2), .ratio_min = log(2.1)}};
    struct nb_gate_case c = {.launches.launches = screen};
    cr_expect(!is_far(&c), "nothing is known yet");
    c.launches.n_screen = 2;
    cr_expect(is_far(&c));
    screen[1].ratio_min = log(1.9);
    cr_expect(!is_far(&c), "one launch's fastest samples are nearer");
    screen[1] = (struct nb_gate_launch){.ratio = log(1.9), .ratio_min = log(2.5)};
    cr_expect(!is_far(&c), "one launch's median is nearer");
    screen[1] = (struct nb_gate_launch){.ratio = NAN, .ratio_min = NAN};
    cr_expect(!is_far(&c));
    screen[0].ratio = screen[1].ratio = -log(3);
    cr_expect(!is_far(&c), "what is faster is timed as ever");
}
