// SPDX-License-Identifier: Apache-2.0
/* Sweeps and maps of real kernels: that the error grows with rho as each variance algorithm must (slopes 2, 1, 0), that rows
 * are lost at the scale that is predicted, and that what cannot be scanned is refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/core/case_key.h"
#include "src/core/json.h"
#include "src/core/registry.h"
#include "src/lab/stress/sweeps.c"
#include "tests/support/files.h"
#include "tests/support/plans.h"
#include "tests/support/sparsely.h"
#include "tests/support/trials.h"

TestSuite(sweeps, .init = load_kernels);

typedef cJSON *maker(const struct nb_trial *t, const struct extent *q);

static cJSON *make(maker *of, const char *variant, const struct extent *q) {
    struct nb_trial t;
    char key[200];
    snprintf(key, sizeof key, "%s/shape:4x1024", variant);
    cr_assert(start_trial(&t, key, NULL));
    cJSON *made = kept_json(of(&t, q));
    nb_trial_release(&t);
    return made;
}

static const cJSON *sweep_of(const cJSON *sweeps, const char *axis, int which) {
    const cJSON *sweep;
    cJSON_ArrayForEach(sweep,
                       sweeps) if (strcmp(nb_json_get_text(sweep, "axis"), axis) == 0 && which-- == 0) return sweep;
    cr_assert_fail("no sweep over %s", axis);
    return NULL;
}

static const cJSON *point_at(const cJSON *sweep, double at) {
    const cJSON *point;
    cJSON_ArrayForEach(point, cJSON_GetObjectItem(sweep, "points")) {
        if (fabs(nb_json_get_number(point, "at") / at - 1) < 1e-9) return point;
    }
    cr_assert_fail("no point at %g", at);
    return NULL;
}

static double figure(const cJSON *sweep, double at, const char *name) {
    return nb_json_get_number(point_at(sweep, at), name);
}

static double predicted(const cJSON *sweep, const char *law, double at) {
    const cJSON *item, *pair;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(sweep, "predicted")) {
        if (strcmp(nb_json_get_text(item, "name"), law) != 0) continue;
        cJSON_ArrayForEach(pair, cJSON_GetObjectItem(item, "points")) {
            if (cJSON_GetArrayItem(pair, 0)->valuedouble == at) return cJSON_GetArrayItem(pair, 1)->valuedouble;
        }
    }
    return NAN;
}

/* Numbers are finite, as JSON demands; cJSON itself would print them as null and hide it. */
static void expect_finite(const cJSON *json) {
    const cJSON *child;
    if (cJSON_IsNumber(json)) cr_assert(isfinite(json->valuedouble), "%s", json->string ? json->string : "");
    cJSON_ArrayForEach(child, json) expect_finite(child);
}

/* ---- rho ---- */

static cJSON *rho_alone(const struct nb_trial *t, const struct extent *q) {
    struct scan s;
    cJSON *sweeps = cJSON_CreateArray();
    cr_assert_eq(scan_init(&s, t, q->rows, q->cols), 0);
    over_rho(sweeps, &s);
    scan_release(&s);
    return sweeps;
}

static const cJSON *rho_sweep(const char *variant) {
    static const struct extent long_rows = {.rows = 8, .cols = 4096};
    return sweep_of(make(rho_alone, variant, &long_rows), "rho", 0);
}

Test(sweeps, laws_over_rho_come_true_within_a_factor_of_eight) {
    static const struct {
        const char *variant, *law;
        double last;
    } expected[] = {
        {"layernorm_onepass_scalar_f32", "slope 2: E[x^2] - mean^2 cancels", 512},
        {"layernorm_twopass_scalar_f32", "slope 1: error of the mean", 4096},
        {"layernorm_welford_scalar_f32", "slope 1: error of the mean", 4096},
        {"layernorm_corrected_scalar_f32", "slope 0: mean corrected", 2048},
        {"rmsnorm_twopass_scalar_f32", "slope 0: nothing cancels", 4096},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i += sparsely()) {
        const cJSON *rho = rho_sweep(expected[i].variant);
        for (double at = 1; at <= expected[i].last; at *= 4) {
            const double ratio = figure(rho, at, "scaled_u") / predicted(rho, expected[i].law, at);
            cr_assert(ratio > 0.125 && ratio < 8, "%s at rho %g: %g of the law", expected[i].variant, at, ratio);
        }
    }
}

/* ---- n, eps, scale ---- */

/* The largest cliff below which everything is well, and the first scale that is lost, are neighbours on the sweep. */
Test(sweeps, rows_are_lost_at_the_scale_that_is_predicted) {
    cJSON *sweeps = make(sweeps_of, "rmsnorm_twopass_scalar_f32", &usual);
    const cJSON *scale = sweep_of(sweeps, "scale", 0), *point, *cliff;
    double limit = INFINITY;
    cJSON_ArrayForEach(cliff, cJSON_GetObjectItem(scale, "cliffs")) {
        if (strstr(nb_json_get_text(cliff, "name"), "overflows")) limit = fmin(limit, nb_json_get_number(cliff, "at"));
    }
    cr_assert(limit > 0x1p57 && limit < 0x1p60, "sqrt(2^128 / 1024) = 2^59, %g", limit);
    cJSON_ArrayForEach(point, cJSON_GetObjectItem(scale, "points")) {
        const double at = nb_json_get_number(point, "at");
        if (at > 0x1p-126 && at < 0.9 * limit) cr_assert_str_eq(nb_json_get_text(point, "state"), "ok");
        if (at > 2 * limit) cr_assert_str_neq(nb_json_get_text(point, "state"), "ok");
    }
}

/* ---- what may not go wrong ---- */

Test(sweeps, every_kind_of_kernel_is_scanned_or_refused_and_numbers_are_finite) {
    int n_scanned = 0, n_refused = 0;
    const char *last = "";
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        struct nb_trial t;
        struct nb_case c;
        char key[200];
        if (entry->kernel->width != NB_SCALAR || strcmp(last, entry->kernel_id) == 0) continue;
        last = entry->kernel_id;
        snprintf(key, sizeof key, "%s/shape:4x64", entry->id);
        cr_assert_eq(nb_case_parse(&c, key), 0);
        nb_case_set_entry(&c, entry);
        nb_case_normalize(&c);
        if (nb_trial_init(&t, &c, entry) == 0) {
            static const struct extent few = {2, 64, 64, 2, 3, 3};
            cJSON *sweeps = kept_json(sweeps_of(&t, &few)), *map = kept_json(map_of(&t, &few));
            const bool scanned = cJSON_GetArraySize(sweeps) > 0;
            const bool possible = entry->kernel->pass == NB_FORWARD && entry->kernel->op != NB_OP_COPY;
            cr_assert_eq(scanned, nb_json_get_text(map, "reason") == NULL, "%s", entry->id);
            cr_assert(possible || !scanned, "%s", entry->id);
            expect_finite(sweeps);
            expect_finite(map);
            n_scanned += scanned;
            n_refused += !scanned;
        }
        nb_trial_release(&t);
    }
    cr_assert(n_scanned > 0 && n_refused > 0, "%d, %d", n_scanned, n_refused);
}
