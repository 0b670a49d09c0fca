// SPDX-License-Identifier: Apache-2.0
/* Which baseline copy is the fastest: by pairs of neighbouring samples, also where a neighbour slows some blocks, or an arm sits some out;
 * and over several trials, of which some meet a neighbour. */
#include <criterion/criterion.h>

#include "src/core/case.h"
#include "src/measure/copies_job.c"
#include "src/measure/session.c"
#include "tests/support/plans.h"

/* The second copy is a tenth faster than the first in every block; later blocks are slowed, and the second took part in more of these. */
Test(copies, the_faster_one_is_so_in_the_same_blocks) {
    double first_ns[TRIAL_BLOCKS], second_ns[TRIAL_BLOCKS];
    for (int b = 0; b < TRIAL_BLOCKS; b++) {
        const double slowed = b < TRIAL_BLOCKS / 2 ? 1 : 2;
        first_ns[b] = b % 3 == 0 && slowed > 1 ? NAN : 100 * slowed;
        second_ns[b] = b % 2 == 0 && slowed == 1 ? NAN : 90 * slowed;
    }
    const struct nb_arm first = {.sample_ns = first_ns}, second = {.sample_ns = second_ns};
    const double base_ns = paired_ns(&first, &first), other_ns = paired_ns(&second, &first);
    cr_expect(isfinite(base_ns) && isfinite(other_ns), "a block without a sample loses a candidate");
    cr_expect_float_eq(other_ns / base_ns, 0.9, 1e-12);
}

/* A trial's answer: the times of copies, of which the third may be left out. */
static void take_trial(struct nb_group_state *state, double narrow_ns, double wide_ns, double stream_ns) {
    static const char *const variants[] = {"copy_v128_f32", "copy_v256_f32", "copy_stream_v256_f32"};
    const double ns[] = {narrow_ns, wide_ns, stream_ns};
    cJSON *line released_by(nb_json_release) = cJSON_CreateObject(), *copies = cJSON_AddArrayToObject(line, "copies");
    for (int i = 0; i < (stream_ns > 0 ? 3 : 2); i++) {
        cJSON *copy = cJSON_CreateObject();
        nb_json_text(copy, "variant", variants[i]);
        nb_json_number(copy, "ns", ns[i]);
        cJSON_AddItemToArray(copies, copy);
    }
    take_copies(state, line);
    state->copy_trials++;
}

Test(copies, the_one_that_loses_least_over_all_trials_is_chosen, .init = load_kernels) {
    struct nb_group_state state = {0};
    for (int i = 0; i < 3; i++) take_trial(&state, 1800, 2000, 0);
    cr_expect_str_eq(choose_candidate(&state, 1, 1), "copy_v128_f32");
    for (int i = 0; i < 2; i++) take_trial(&state, 2740, 2280, 0);
    cr_expect_str_eq(choose_candidate(&state, 1, 1), "copy_v256_f32");
    cr_expect_float_eq(nb_json_get_number(nb_json_find(state.copies, "variant", "copy_v128_f32"), "ns"),
                       pow(1800, 0.6) * pow(2740, 0.4), 1e-6);
    cJSON_Delete(state.copies);
}

/* Of two that are about as fast the wider; one without a time in some trial is not chosen. */
Test(copies, a_trial_without_a_time_counts_against_it, .init = load_kernels) {
    struct nb_group_state state = {0};
    take_trial(&state, 1960, 2000, 0);
    cr_expect_str_eq(choose_candidate(&state, 1, 1), "copy_v256_f32");
    take_trial(&state, 1960, NAN, 0);
    take_trial(&state, 1960, 1000, 0);
    cr_expect_str_eq(choose_candidate(&state, 1, 1), "copy_v128_f32");
    cJSON_Delete(state.copies);
}

/* One that stores past the caches is the runner-up of one that does not, and the other way round, but not if it takes far longer. */
Test(copies, the_runner_up_stores_the_other_way, .init = load_kernels) {
    static const struct {
        double plain_ns, narrow_ns, stream_ns;
        const char *chosen, *other;
    } trials[] = {{2000, 2200, 2600, "copy_v256_f32", "copy_stream_v256_f32"},
                  {2600, 2700, 2000, "copy_stream_v256_f32", "copy_v256_f32"},
                  {2000, 2200, 3100, "copy_v256_f32", NULL}};
    for (size_t t = 0; t < sizeof trials / sizeof trials[0]; t++) {
        struct nb_group_state state = {0};
        take_trial(&state, trials[t].narrow_ns, trials[t].plain_ns, trials[t].stream_ns);
        const char *chosen = choose_candidate(&state, 1, 1), *other = choose_other(&state, chosen, 1, 1);
        cr_expect_str_eq(chosen, trials[t].chosen);
        cr_expect(!other == !trials[t].other && (!other || strcmp(other, trials[t].other) == 0), "trial %zu: %s", t,
                  other ? other : "none");
        cJSON_Delete(state.copies);
    }
}

/* Only about the size of the last cache. */
Test(copies, only_cases_about_the_last_cache_have_a_runner_up, .init = load_kernels) {
    const struct nb_cpu *cpu = nb_cpu_light();
    const struct {
        int64_t rows;
        bool may;
    } sizes[] = {{1, false}, {cpu->l3_bytes / 8192, true}, {3 * cpu->l3_bytes / 8192, false}};
    if (cpu->l2_bytes == 0 || cpu->l3_bytes <= cpu->l2_bytes) cr_skip_test("this CPU's caches are not known");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct nb_case c = {0};
        char key[200];
        snprintf(key, sizeof key, "rmsnorm_fast_v256_f32/shape:%lldx1024", (long long)sizes[i].rows);
        cr_assert_eq(nb_case_parse(&c, key), 0);
        cr_expect_eq(may_change_copy(&c), sizes[i].may, "%s", key);
    }
}
