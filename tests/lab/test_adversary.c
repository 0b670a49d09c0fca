// SPDX-License-Identifier: Apache-2.0
/* The search for worst rows: the order of summation and faults are found, reproducers reproduce. Budgets
 * are in calls, so that nothing depends on the machine's speed. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/json.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/lab/stress/row_search.c"
#include "src/lab/stress/trial.h"
#include "tests/support/files.h"
#include "tests/support/trials.h"

static cJSON *search_into(struct nb_trial *t, double calls, const char *folder) {
    cJSON *options = kept_json(cJSON_CreateObject());
    nb_json_number(options, "budget_calls", calls);
    if (folder) nb_json_text(options, "reproducer_dir", folder);
    return nb_worst_case(t, options);
}
static cJSON *search(struct nb_trial *t, double calls) { return search_into(t, calls, NULL); }

static const cJSON *objective(const cJSON *found, const char *name) { return nb_json_find(found, "objective", name); }

static double value_of(const cJSON *found, const char *name) {
    const cJSON *one = objective(found, name);
    if (!one) return NAN;
    return cJSON_IsString(nb_json_get(one, "value")) ? nb_json_get_exact(one, "value")
                                                     : nb_json_get_number(one, "value");
}

/* ---- the whole search ---- */

Test(adversary, the_order_of_summation_is_found) {
    static const char *const wanted[][2] = {{"rmsnorm_serial_scalar_f32/shape:1x4096", " 1 lane,"},
                                            {"rmsnorm_twopass_scalar_f32/shape:1x4096", " 8 lanes,"},
                                            {"rmsnorm_lowp_scalar_f16/shape:1x512", " 1 lane,"}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct nb_trial t released_by(nb_trial_release);
        if (!start_trial(&t, wanted[i][0], NULL)) continue;
        cJSON *found = kept_json(search(&t, 60));
        cr_assert_not_null(found, "%s", t.reason);
        const char *generator = nb_json_get_string(objective(found, "sum_error_u"), "generator");
        cr_expect(strstr(generator, wanted[i][1]), "%s: %s", wanted[i][0], generator);
    }
}

Test(adversary, our_kernels_stay_within_their_bound_and_the_budget_is_kept) {
    static const char *const keys[] = {
        "rmsnorm_serial_scalar_f32/shape:1x512/eps:1e-6", "rmsnorm_lowp_scalar_f16/shape:2x256/eps:1e-6",
        "layernorm_onepass_scalar_f32/shape:1x512/eps:1e-6", "layernorm_corrected_scalar_bf16/shape:1x65/eps:1e-6",
        "layernorm_twopass_scalar_f32/shape:1x3/eps:0"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct nb_trial t released_by(nb_trial_release);
        if (!start_trial(&t, keys[i], NULL)) continue;
        cJSON *found = kept_json(search(&t, 400));
        const cJSON *one;
        cr_assert_not_null(found, "%s", t.reason);
        cr_expect_leq(t.calls, 401);
        cr_expect(value_of(found, "bound") > 0.1, "%s: only %g of the bound", keys[i], value_of(found, "bound"));
        cJSON_ArrayForEach(one, found)
            cr_expect(!nb_json_get_bool(one, "violation"), "%s: %s", keys[i], nb_json_get_text(one, "generator"));
    }
}

Test(adversary, rows_beyond_what_the_kernel_claims_are_not_taken) {
    struct nb_trial t released_by(nb_trial_release);
    struct nb_range range;
    if (!start_trial(&t, "layernorm_onepass_scalar_f32/shape:1x256/eps:1e-6", NULL)) return;
    nb_kernel_range(t.entry->kernel, &t.call, &range);
    cr_assert(isfinite(range.max_rho));
    cJSON *found = kept_json(search(&t, 400));
    const cJSON *one;
    cJSON_ArrayForEach(one, found) {
        const cJSON *row = nb_json_get(one, "row");
        if (!row) continue;
        const double mean = nb_json_get_number(row, "mean"), deviation = sqrt(nb_json_get_number(row, "variance"));
        cr_expect(fabs(mean) <= range.max_rho * deviation * (1 + 1e-9), "%s: rho %g",
                  nb_json_get_text(one, "objective"), fabs(mean) / deviation);
    }
}

Test(adversary, a_fault_is_a_violation_with_its_row) {
    struct nb_trial t released_by(nb_trial_release);
    cr_assert(start_trial(&t, "planted:planted_f32/shape:1x12", "planted"));
    cJSON *found = kept_json(search(&t, 500));
    const cJSON *bound = objective(found, "bound"), *values = nb_json_get(bound, "x");
    double largest = 0;
    cr_assert(bound && nb_json_get_bool(bound, "violation"));
    cr_assert_eq(cJSON_GetArraySize(values), 12);
    for (int i = 0; i < 12; i++)
        largest = fmax(largest, fabs(strtod(cJSON_GetArrayItem(values, i)->valuestring, NULL)));
    cr_expect((largest > 1000 && largest < 1e6) || largest < 0x1p-20, "%a", largest);
}

/* ---- reproducers ---- */

/* A new trial of the reproducer's key, on the rows that its file gives, has the same figures. */
static void expect_reproduced(const cJSON *one) {
    const char *key = nb_json_get_text(one, "key");
    struct nb_trial t released_by(nb_trial_release);
    struct nb_row_score score;
    cr_assert_not_null(key);
    cr_assert(start_trial(&t, key, NULL)); /* nb_trial_init() reads the file: its inputs are the case's */
    double *x freed = calloc((size_t)t.in.cols, sizeof *x);
    for (int64_t i = 0; i < t.in.cols; i++) x[i] = nb_get(t.in.x, i, t.in.dtype);
    nb_trial_set_x(&t, x, x);
    cr_assert_eq(nb_trial_run(&t), 0);
    cr_assert_eq(nb_row_score(&t, &score), 0);
    for (int m = 0; m < NB_N_MEASURES; m++) {
        const double said = nb_json_get_number(one, nb_measure_names[m]);
        cr_expect(said == score.worst[m].value || isnan(said), "%s: %s is %g, was %g", key, nb_measure_names[m],
                  score.worst[m].value, said);
    }
    cr_expect_eq(unlink(nb_json_get_text(one, "file")), 0);
}

Test(adversary, reproducers_reproduce_from_their_files) {
    static const char *const keys[] = {"rmsnorm_serial_scalar_f32/shape:2x40/eps:1e-6/seed:9",
                                       "layernorm_twopass_scalar_bf16/shape:1x40/eps:1e-6",
                                       "rmsnorm_lowp_scalar_f16/shape:1x40/eps:1e-6"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct nb_trial t released_by(nb_trial_release);
        if (!start_trial(&t, keys[i], NULL)) continue;
        char *folder = new_folder();
        cJSON *found = kept_json(search_into(&t, 200, folder)), *one;
        cr_assert_not_null(found, "%s", t.reason);
        cJSON_ArrayForEach(one, found) if (nb_json_get(one, "row")) expect_reproduced(one);
        cr_expect_eq(rmdir(folder), 0);
    }
}

Test(adversary, what_cannot_be_searched_says_why) {
    static const char *const cases[][3] = {{"error:bad_error_f32/shape:1x96", "error", "returned"},
                                           {"batchnorm_twopass_scalar_f32/shape:8x16", NULL, "BatchNorm"}};
    for (int i = 0; i < 2; i++) {
        struct nb_trial t released_by(nb_trial_release);
        if (!start_trial(&t, cases[i][0], cases[i][1])) continue;
        cr_expect_null(search(&t, 50), "%s", cases[i][0]);
        cr_expect_not_null(strstr(t.reason, cases[i][2]), "%s: %s", cases[i][0], t.reason);
    }
}
