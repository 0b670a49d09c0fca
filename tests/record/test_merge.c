// SPDX-License-Identifier: Apache-2.0
/* Shards put together: the same as one run, or an error that says what does not fit. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/results.h"
#include "tests/support/runs.h"

#define GROUP(index, key) "{\"index\":" #index ",\"part\":0,\"keys\":[\"" key "\"],\"reference\":0}"
#define SKIPPED(rows) "{\"reason\":\"no AVX-512\",\"count\":1,\"key\":\"rmsnorm_a_v256_f32/shape:" #rows "x2\"}"
#define NO_KERNEL "{\"reason\":\"no kernel\",\"count\":3}"

static void quiet(void) { nb_log_quiet(true); }
TestSuite(merge, .init = quiet);

/* A finished run of one-case groups in which every case takes 100 ns; groups_text must name the keys in order. */
static char *finished_run(const char *groups_text, const char *skips, const char *shard, const char *const *keys,
                          int n) {
    struct nb_strbuf out = {0};
    char *dir = new_folder(), *run = run_line(groups_text, skips, shard, 1);
    nb_strbuf_add(&out, run);
    for (int g = 0; g < n; g++) {
        nb_strbuf_addf(&out,
                       "{\"type\":\"check\",\"group\":%d,\"cases\":[{\"key\":\"%s\",\"status\":\"ok\",\"chain\":8,"
                       "\"row_local\":true}],\"copies\":[],\"elapsed_s\":0}\n",
                       g, keys[g]);
        nb_strbuf_addf(&out,
                       "{\"type\":\"launch\",\"group\":%d,\"launch\":0,\"cases\":[{\"key\":\"%s\",\"copy\":null,"
                       "\"sample_ns\":[100],\"per_sample\":1,\"chunked\":false,\"contaminated\":[]}],\"copies\":[],"
                       "\"noise\":{\"cpu\":0},\"elapsed_s\":0}\n",
                       g, keys[g]);
    }
    nb_strbuf_add(&out, "{\"type\":\"end\",\"elapsed_s\":2,\"peak_memory_mib\":10,\"interrupted\":null}\n");
    put_file(dir, NB_JOURNAL_FILE, out.text, out.len);
    nb_strbuf_release(&out);
    free(run);
    return dir;
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

/* Replaces the first `old` in a file of the folder. */
static void change_file(const char *dir, const char *name, const char *old, const char *new) {
    char *text = get_file(dir, name), *hit = strstr(text, old);
    struct nb_strbuf out = {0};
    cr_assert_not_null(hit, "%s", old);
    nb_strbuf_addn(&out, text, (size_t)(hit - text));
    nb_strbuf_add(&out, new);
    nb_strbuf_add(&out, hit + strlen(old));
    put_file(dir, name, out.text, out.len);
    nb_strbuf_release(&out);
    free(text);
}

Test(merge, shards_in_any_order_give_the_records_of_one_run) {
    char *one = first_shard(), *two = second_shard(), *all = whole_run();
    const char *dirs[] = {two, one};
    struct nb_results merged, whole;
    cr_assert_eq(nb_results_merge(&merged, dirs, 2, false), 0);
    cr_assert_eq(nb_results_fold(&whole, all), 0);
    cr_assert_eq(merged.n, whole.n);
    for (size_t i = 0; i < whole.n; i++) {
        struct nb_strbuf a = {0}, b = {0};
        cJSON *x = nb_record_to_json(&merged.records[i]), *y = nb_record_to_json(&whole.records[i]);
        nb_json_print(x, &a);
        nb_json_print(y, &b);
        cr_assert_str_eq(a.text, b.text);
        nb_strbuf_release(&a);
        nb_strbuf_release(&b);
        cJSON_Delete(x);
        cJSON_Delete(y);
    }
    cr_assert(nb_json_get_bool(merged.meta, "complete"));
    cr_assert(cJSON_IsNull(cJSON_GetObjectItem(merged.meta, "shard")));
    cr_assert_eq(nb_json_get_number(merged.meta, "elapsed_s"), 4);
    cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItem(merged.meta, "machines")), 1);
    cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItem(merged.meta, "merged")), 2);
    cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItem(merged.meta, "skips")), 4,
                 "the cells of another shard are not left out");
    nb_results_release(&merged);
    nb_results_release(&whole);
    remove_run(one);
    remove_run(two);
    remove_run(all);
}

Test(merge, merged_results_read_back_exactly) {
    char *one = first_shard(), *two = second_shard(), *out = new_folder();
    const char *dirs[] = {one, two};
    struct nb_results merged, back;
    struct nb_strbuf text = {0}, again = {0};
    cr_assert_eq(nb_results_merge(&merged, dirs, 2, false), 0);
    cr_assert_eq(nb_results_write(&merged, out), 0);
    cr_assert_eq(nb_results_read(&back, out), 0);
    nb_results_print(&merged, &text);
    nb_results_print(&back, &again);
    cr_assert_str_eq(again.text, text.text);
    nb_strbuf_release(&text);
    nb_strbuf_release(&again);
    nb_results_release(&merged);
    nb_results_release(&back);
    remove_run(one);
    remove_run(two);
    remove_run(out);
}

struct job {
    const char *dirs[3];
    size_t n;
};
static int merge_job(void *arg) {
    const struct job *job = arg;
    struct nb_results r;
    int result = nb_results_merge(&r, job->dirs, job->n, false);
    if (result == 0) nb_results_release(&r);
    return result;
}

static void assert_refused(struct job job, const char *said) {
    int result;
    char *errors = errors_of(merge_job, &job, &result);
    cr_assert_eq(result, -1);
    cr_assert_not_null(strstr(errors, said), "%s", errors);
    free(errors);
}

Test(merge, a_missing_shard_is_named_and_only_left_out_on_demand) {
    char *one = first_shard();
    change_file(one, NB_JOURNAL_FILE, "\"shard\":[1,2]", "\"shard\":[2,4]");
    const char *dirs[] = {one};
    struct nb_results r;
    assert_refused((struct job){{one}, 1}, "missing: 1 3 4");
    cr_assert_eq(nb_results_merge(&r, dirs, 1, true), 0);
    cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItem(r.meta, "missing_shards")), 3);
    cr_assert_not(nb_json_get_bool(r.meta, "complete"));
    nb_results_release(&r);
    remove_run(one);
}

Test(merge, what_does_not_belong_together_is_refused) {
    char *one = first_shard(), *two = second_shard(), *all = whole_run();
    assert_refused((struct job){{one, two, one}, 3}, "both shard 1/2");
    assert_refused((struct job){{one, all}, 2}, "is not a shard");
    assert_refused((struct job){{one, "/nonexistent"}, 2}, "/nonexistent");
    change_file(two, NB_JOURNAL_FILE, "0123456789abcdef", "fedcba9876543210");
    assert_refused((struct job){{one, two}, 2}, "different plans");
    change_file(two, NB_JOURNAL_FILE, "fedcba9876543210", "0123456789abcdef");
    change_file(two, NB_JOURNAL_FILE, "\"shard\":[2,2]", "\"shard\":[2,3]");
    assert_refused((struct job){{one, two}, 2}, "one of 3");
    remove_run(one);
    remove_run(two);
    remove_run(all);
}

Test(merge, a_case_in_two_shards_is_refused) {
    static const char *const keys[] = {KEY_RMS};
    char *one = first_shard(), *two = finished_run("[" GROUP(1, KEY_RMS) "]", "[]", "[2,2]", keys, 1);
    assert_refused((struct job){{one, two}, 2}, "in another shard too");
    remove_run(one);
    remove_run(two);
}

Test(merge, another_machine_is_reported_with_what_differs) {
    char *one = first_shard(), *two = second_shard();
    change_file(two, NB_JOURNAL_FILE, "Hand-made", "Other");
    const char *dirs[] = {one, two};
    struct nb_results r;
    cr_assert_eq(nb_results_merge(&r, dirs, 2, false), 0);
    const cJSON *machine = cJSON_GetArrayItem(cJSON_GetObjectItem(r.meta, "machines"), 1);
    const cJSON *differs = cJSON_GetObjectItem(machine, "differs");
    cr_assert_eq(cJSON_GetArraySize(differs), 1);
    cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetArrayItem(differs, 0)),
                     "cpu.model: \"Other\", first machine \"Hand-made\"");
    cr_assert_eq(r.records[0].machine, 0);
    cr_assert_eq(r.records[1].machine, 1);
    cr_assert_str_eq(r.records[1].key, KEY_LN);
    nb_results_release(&r);
    remove_run(one);
    remove_run(two);
}
