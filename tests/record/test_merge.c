// SPDX-License-Identifier: Apache-2.0
/* Shards put together: the same as one run, or an error that says what does not fit. */
#include <criterion/criterion.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/record.h"
#include "tests/support/files.h"
#include "tests/support/runs.h"

#define GROUP(index, key) "{\"index\":" #index ",\"part\":0,\"keys\":[\"" key "\"],\"reference\":0}"
#define SKIPPED(rows) "{\"reason\":\"no AVX-512\",\"count\":1,\"key\":\"rmsnorm_a_v256_f32/shape:" #rows "x2\"}"
#define NO_KERNEL "{\"reason\":\"no kernel\",\"count\":3}"

TestSuite(merge, .init = quiet);

/* A finished run of one-case groups in which every case takes 100 ns; groups_text must name the keys in order. */
static char *finished_run(const char *groups_text, const char *skips, const char *shard, const char *const *keys,
                          int n) {
    struct nb_strbuf out = {0};
    const double sample_ns = 100;
    nb_strbuf_add(&out, run_line(groups_text, skips, shard, 1));
    for (int g = 0; g < n; g++) {
        add_check(&out, g, &keys[g], 1);
        add_launch(&out, g, 0, &keys[g], 1, &sample_ns, 1);
    }
    add_end(&out);
    return folder_of(&out);
}

static char *first_shard(void) {
    static const char *const keys[] = {KEY_RMS, KEY_PLUGIN};
    return finished_run("[" GROUP(0, KEY_RMS) "," GROUP(2, KEY_PLUGIN) "]",
                        "[{\"reason\":\"in another shard\",\"count\":1}," NO_KERNEL "," SKIPPED(3) "]", "[1,2]", keys,
                        2);
}
static char *second_shard(void) {
    static const char *const keys[] = {KEY_LN};
    return finished_run("[" GROUP(1, KEY_LN) "]",
                        "[{\"reason\":\"in another shard\",\"count\":2}," NO_KERNEL "," SKIPPED(2) "," SKIPPED(1) "]",
                        "[2,2]", keys, 1);
}
static char *whole_run(void) {
    static const char *const keys[] = {KEY_RMS, KEY_LN, KEY_PLUGIN};
    return finished_run("[" GROUP(0, KEY_RMS) "," GROUP(1, KEY_LN) "," GROUP(2, KEY_PLUGIN) "]",
                        "[" NO_KERNEL "," SKIPPED(3) "," SKIPPED(2) "," SKIPPED(1) "]", "null", keys, 3);
}

struct job {
    const char *dirs[3];
    size_t n;
};
static int merge(const struct job *job) {
    struct nb_results r released_by(nb_results_release);
    return nb_results_merge(&r, job->dirs, job->n, false);
}

static void assert_refused(struct job job, const char *said) { expect_refused(merge(&job), said, said); }

Test(merge, a_missing_shard_is_named_and_only_left_out_on_demand) {
    char *one = first_shard();
    change_journal(one, "\"shard\":[1,2]", "\"shard\":[2,4]");
    const char *dirs[] = {one};
    struct nb_results r released_by(nb_results_release);
    assert_refused((struct job){{one}, 1}, "missing: 1 3 4");
    cr_assert_eq(nb_results_merge(&r, dirs, 1, true), 0);
    cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItem(r.meta, "missing_shards")), 3);
    cr_assert_not(nb_json_get_bool(r.meta, "complete"));
}

Test(merge, what_does_not_belong_together_is_refused) {
    char *one = first_shard(), *two = second_shard(), *all = whole_run();
    assert_refused((struct job){{one, two, one}, 3}, "both shard 1/2");
    assert_refused((struct job){{one, all}, 2}, "is not a shard");
    assert_refused((struct job){{one, "/nonexistent"}, 2}, "/nonexistent");
    change_journal(two, "0123456789abcdef", "fedcba9876543210");
    assert_refused((struct job){{one, two}, 2}, "different plans");
    change_journal(two, "fedcba9876543210", "0123456789abcdef");
    change_journal(two, "\"shard\":[2,2]", "\"shard\":[2,3]");
    assert_refused((struct job){{one, two}, 2}, "one of 3");
}

Test(merge, a_case_in_two_shards_is_refused) {
    static const char *const keys[] = {KEY_RMS};
    char *one = first_shard(), *two = finished_run("[" GROUP(1, KEY_RMS) "]", "[]", "[2,2]", keys, 1);
    assert_refused((struct job){{one, two}, 2}, "in another shard too");
}

Test(merge, another_machine_is_reported_with_what_differs) {
    char *one = first_shard(), *two = second_shard();
    change_journal(two, "Hand-made", "Other");
    const char *dirs[] = {one, two};
    struct nb_results r released_by(nb_results_release);
    cr_assert_eq(nb_results_merge(&r, dirs, 2, false), 0);
    const cJSON *machine = cJSON_GetArrayItem(cJSON_GetObjectItem(r.meta, "machines"), 1);
    const cJSON *differs = cJSON_GetObjectItem(machine, "differs");
    cr_assert_eq(cJSON_GetArraySize(differs), 1);
    cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetArrayItem(differs, 0)),
                     "cpu.model: \"Other\", first machine \"Hand-made\"");
    cr_assert_eq(r.records[0].machine, 0);
    cr_assert_eq(r.records[1].machine, 1);
    cr_assert_str_eq(r.records[1].key, KEY_LN);
}
