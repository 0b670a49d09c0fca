// SPDX-License-Identifier: Apache-2.0
/* Maps of real kernels: that the error grows with rho as each variance algorithm must (slopes 2, 1, 0), that rows are lost at the
 * scale that is predicted, and that what cannot be scanned is refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/lab/stress/map.c"
#include "tests/support/files.h"
#include "tests/support/plans.h"
#include "tests/support/sparsely.h"
#include "tests/support/trials.h"

TestSuite(map, .init = load_kernels);

static void start(struct nb_trial *t, const char *variant) {
    char key[200];
    snprintf(key, sizeof key, "%s/shape:4x1024", variant);
    cr_assert(start_trial(t, key, NULL));
}

/* Numbers are finite, as JSON demands; cJSON itself would print them as null and hide it. */
static void expect_finite(const cJSON *json) {
    const cJSON *child;
    if (cJSON_IsNumber(json)) cr_assert(isfinite(json->valuedouble), "%s", json->string ? json->string : "");
    cJSON_ArrayForEach(child, json) expect_finite(child);
}

Test(map, errors_grow_with_rho_by_the_power_of_the_algorithm) {
    static const struct {
        const char *variant;
        double from, to; /* of rho: where the law has taken over, and where digits are left */
        double slope;
    } expected[] = {
        {"layernorm_onepass_scalar_f32", 16, 512, 2},  {"layernorm_twopass_scalar_f32", 64, 4096, 1},
        {"layernorm_welford_scalar_f32", 64, 4096, 1}, {"layernorm_corrected_scalar_f32", 16, 1024, 0},
        {"rmsnorm_twopass_scalar_f32", 16, 4096, 0},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i += sparsely()) {
        struct nb_trial t released_by(nb_trial_release);
        struct scan s released_by(scan_release);
        struct point first, last;
        start(&t, expected[i].variant);
        cr_assert_eq(scan_init(&s, &t, 8, 4096), 0);
        scan_measure(&s, 1, expected[i].from, &first);
        scan_measure(&s, 1, expected[i].to, &last);
        const double slope = log(last.scaled_u / first.scaled_u) / log(expected[i].to / expected[i].from);
        cr_assert(fabs(slope - expected[i].slope) < 0.4, "%s: %g", expected[i].variant, slope);
    }
}

Test(map, rows_are_lost_at_the_scale_that_is_predicted) {
    struct nb_trial t released_by(nb_trial_release);
    const cJSON *pair, *scale;
    double limit = INFINITY; /* log2 */
    start(&t, "rmsnorm_twopass_scalar_f32");
    const cJSON *map = kept_json(map_of(&t, &usual)), *lines = cJSON_GetObjectItem(map, "predicted");
    cJSON_ArrayForEach(pair, nb_json_get(nb_json_find(lines, "name", "sum of squares overflows"), "line")) {
        if (isinf(limit)) limit = cJSON_GetArrayItem(pair, 0)->valuedouble; /* at the least rho */
    }
    cr_assert(limit > 57 && limit < 60, "sqrt(2^128 / 1024) = 2^59, 2^%g", limit);
    const cJSON *state = cJSON_GetArrayItem(cJSON_GetObjectItem(map, "state"), 0)->child;
    cJSON_ArrayForEach(scale, cJSON_GetObjectItem(map, "log2_scale")) {
        const double at = scale->valuedouble;
        if (at > -126 && at < limit - 0.5) cr_assert_str_eq(state->valuestring, "ok", "2^%g", at);
        if (at > limit + 1) cr_assert_str_neq(state->valuestring, "ok", "2^%g", at);
        state = state->next;
    }
}

Test(map, every_kind_of_kernel_is_scanned_or_refused_and_numbers_are_finite) {
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
            static const struct extent few = {2, 64, 3, 3};
            const cJSON *map = kept_json(map_of(&t, &few));
            const bool scanned = nb_json_get_text(map, "reason") == NULL;
            const bool possible = entry->kernel->pass == NB_FORWARD && entry->kernel->op != NB_OP_COPY;
            cr_assert(possible || !scanned, "%s", entry->id);
            expect_finite(map);
            n_scanned += scanned;
            n_refused += !scanned;
        }
        nb_trial_release(&t);
    }
    cr_assert(n_scanned > 0 && n_refused > 0, "%d, %d", n_scanned, n_refused);
}
