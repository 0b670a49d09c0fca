// SPDX-License-Identifier: Apache-2.0
/* Whatever may be written to a journal is read again: every kind of failure, every kind of line, the extremes of a launch. */
#include <criterion/criterion.h>
#include <math.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/measure/lines.h"
#include "src/record/record.h"
#include "tests/support/files.h"
#include "tests/support/runs.h"

static const char *const keys[] = {KEY_RMS, KEY_LN, KEY_PLUGIN};

static char *run_of_three(int launches) {
    return run_line("[{\"index\":0,\"part\":0,\"keys\":[\"" KEY_RMS "\",\"" KEY_LN "\",\"" KEY_PLUGIN
                    "\"],\"reference\":0}]",
                    "[]", "null", launches);
}

static void write_text(struct nb_journal *j, const char *text) {
    cJSON *line = kept_json(cJSON_Parse(text));
    if (cJSON_HasObjectItem(line, "plan")) /* so that a group may stop */
        nb_json_number(nb_json_get(line, "plan"), "most_launches", 8);
    cr_assert_eq(nb_journal_write(j, line), 0);
}

static void write_line(struct nb_journal *j, cJSON *line) { cr_assert_eq(nb_journal_write(j, kept_json(line)), 0); }

TestSuite(lines, .init = quiet);

Test(lines, every_kind_of_failure_is_read_again) {
    int n = 0;
    for (enum nb_status status = NB_OK; status < NB_N_STATUSES; status++) {
        if (!nb_status_ends(status)) continue;
        for (int launch = -1; launch < 2; launch++) {
            char *dir = new_folder();
            struct nb_journal j;
            struct nb_results r released_by(nb_results_release);
            cr_assert_eq(nb_journal_create(&j, dir), 0);
            write_text(&j, run_of_three(2));
            write_line(&j,
                       nb_failure_to_json(&(struct nb_failure){0, launch, keys[1], "why\n\"it\" \x01 did", status}));
            nb_journal_close(&j);
            cr_assert_eq(nb_results_fold(&r, dir), 0, "%s", nb_status_name(status));
            cr_expect_eq(r.records[1].status, status);
            cr_expect_str_eq(r.records[1].reason, "why\n\"it\" \x01 did");
            n++;
        }
    }
    cr_expect_eq(n, 36, "twelve ends of a case, each in the check and in two launches: %d", n);
}

Test(lines, failures_that_end_nothing_are_refused) {
    static const char *const wrong[] = {
        "{\"type\":\"failure\",\"group\":0,\"launch\":null,\"key\":\"k\",\"status\":\"ok\",\"reason\":\"\"}",
        "{\"type\":\"failure\",\"group\":0,\"launch\":null,\"key\":\"k\",\"status\":\"not_run\",\"reason\":\"\"}",
        "{\"type\":\"failure\",\"group\":0,\"launch\":null,\"key\":\"k\",\"status\":\"fine\",\"reason\":\"\"}",
        "{\"type\":\"failure\",\"group\":-1,\"launch\":null,\"key\":\"k\",\"status\":\"crashed\",\"reason\":\"\"}",
        "{\"type\":\"failure\",\"group\":0,\"launch\":0.5,\"key\":\"k\",\"status\":\"crashed\",\"reason\":\"\"}",
        "{\"type\":\"failure\",\"group\":0,\"launch\":0,\"status\":\"crashed\",\"reason\":\"\"}",
        "{\"type\":\"failure\",\"group\":0,\"launch\":0,\"key\":\"k\",\"status\":\"crashed\"}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct nb_failure f;
        cr_expect_eq(nb_failure_read(&f, kept_json(cJSON_Parse(wrong[i]))), -1, "%s", wrong[i]);
    }
}

/* Of three cases and two copies, of which the second is faster, three blocks: the line that a worker says. */
static cJSON *launch_line(int launch, double ns) {
    const struct nb_launch_line l = {.launch = launch, .noise = {NAN, NAN, NAN, NAN, NAN, 0, 1, NAN}, .elapsed_s = 0.1};
    static const char *const copies_said[] = {"copy_v256_f32", "copy_stream_v256_f32"};
    const double samples[] = {ns, NAN, 2 * ns};
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "launch");
    nb_json_add_members(line, nb_launch_line_members, &l);
    cJSON *cases = cJSON_AddArrayToObject(line, "cases"), *copies = cJSON_AddArrayToObject(line, "copies");
    for (int i = 0; i < 5; i++) {
        const double share = i == 4 ? 0.8 : 1;
        const struct nb_timed t = {.key = i < 3 ? keys[i] : NULL,
                                   .copy = i == 1 ? copies_said[0] : NULL,
                                   .other_copy = i == 1 ? copies_said[1] : NULL,
                                   .level = i == 2 ? "DRAM" : NULL,
                                   .variant = i < 3 ? NULL : copies_said[i - 3],
                                   .per_sample = 1,
                                   .core_ns = i == 2 ? 12.5 : (double)NAN};
        cJSON *arm = nb_json_of_members(i < 3 ? nb_timed_case_members : nb_timed_copy_members, &t);
        cJSON *array = cJSON_AddArrayToObject(arm, "sample_ns");
        for (int b = 0; b < 3; b++)
            cJSON_AddItemToArray(array,
                                 isfinite(samples[b]) ? cJSON_CreateNumber(share * samples[b]) : cJSON_CreateNull());
        cJSON_AddItemToArray(i < 3 ? cases : copies, arm);
    }
    return line;
}

Test(lines, a_run_with_every_kind_of_line_is_read_again_by_every_reader) {
    static const char *const others[] = {
        "{\"type\":\"check\",\"group\":0,\"cases\":[{\"key\":\"" KEY_RMS
        "\",\"status\":\"ok\",\"summation_depth\":8,\"row_local\":true},"
        "{\"key\":\"" KEY_LN
        "\",\"status\":\"out_of_range\",\"reason\":\"r\",\"summation_depth\":0,\"row_local\":false},"
        "{\"key\":\"" KEY_PLUGIN
        "\",\"status\":\"ok\",\"summation_depth\":1,\"column_summation_depth\":2,\"row_local\":true,\"library\":\"l\","
        "\"implementation\":\"i\"}],\"copies\":[{\"variant\":\"copy_v256_f32\",\"ns\":null}],\"elapsed_s\":0.1}",
        "{\"type\":\"counters\",\"group\":0,\"cases\":[{\"key\":\"" KEY_RMS "\",\"counters\":[]}]}",
        "{\"type\":\"stop\",\"group\":0,\"launches\":6,\"why\":\"aim\"}",
        "{\"type\":\"resume\",\"started\":\"2025-01-31T12:00:00Z\",\"argv\":[\"run\"],\"fingerprint\":{}}",
        "{\"type\":\"end\",\"elapsed_s\":2,\"peak_memory_mib\":null,\"interrupted\":15}"};
    char *dir = new_folder();
    struct nb_journal j;
    struct nb_sample_table samples released_by(nb_sample_table_release);
    cr_assert_eq(nb_journal_create(&j, dir), 0);
    write_text(&j, run_of_three(6));
    write_text(&j, others[0]);
    for (int launch = 0; launch < 6; launch++) write_line(&j, launch_line(launch, 100 + launch));
    for (int i = 1; i < 5; i++) write_text(&j, others[i]);
    nb_journal_close(&j);
    struct nb_results r released_by(nb_results_release) = results_of(dir);
    for (int i = 0; i < 3; i++) {
        cr_expect(r.records[i].has_timing && r.records[i].timing.n_launches == 6, "%s", keys[i]);
        cr_expect_eq(r.records[i].status, i == 1 ? NB_OUT_OF_RANGE : NB_OK);
    }
    cr_expect_str_eq(r.records[1].timing.copy, "copy_stream_v256_f32", "the faster of the two copies is taken");
    cr_expect_float_eq(r.records[1].timing.vs_copy.value, 0.8, 1e-6);
    cr_assert_eq(nb_sample_table_read(&samples, dir), 0);
    cr_expect_eq(samples.n, 3);
    cr_expect_eq(samples.n_launches, 6);
}

static void break_line(cJSON *line, int how) {
    cJSON *cases = nb_json_get(line, "cases"), *first = cases->child;
    cJSON *copies = nb_json_get(line, "copies");
    cJSON *samples = nb_json_get(first, "sample_ns");
    if (how == 0) cJSON_ReplaceItemInObject(line, "group", cJSON_CreateNumber(-1));
    if (how == 1) cJSON_ReplaceItemInObject(line, "launch", cJSON_CreateNull());
    if (how == 2) cJSON_DeleteItemFromObject(first, "key");
    if (how == 3) cJSON_ReplaceItemInObject(first, "key", cJSON_CreateString(keys[1]));
    if (how == 4) cJSON_AddItemToArray(samples, cJSON_CreateNumber(1));
    if (how == 5) cJSON_ReplaceItemInArray(samples, 0, cJSON_CreateNumber(0));
    if (how == 6) cJSON_ReplaceItemInArray(samples, 0, cJSON_CreateNumber(-3));
    if (how == 7) cJSON_ReplaceItemInArray(samples, 0, cJSON_CreateString("1"));
    if (how == 8) cJSON_DeleteItemFromArray(copies, 0);
    if (how == 9) cJSON_DeleteItemFromObject(copies->child, "variant");
    if (how == 11) cJSON_DeleteItemFromArray(copies, 1);
    if (how == 12) cJSON_AddItemToObject(first, "probe", cJSON_CreateIntArray((const int[]){1, 1}, 2));
    if (how == 13) cJSON_AddNullToObject(first, "probe");
    if (how == 14) cJSON_AddItemToObject(first, "probe", cJSON_CreateIntArray((const int[]){1, 0, 1}, 3));
    if (how == 10) cJSON_AddItemToObject(first, "preempted", cJSON_CreateIntArray((const int[]){3}, 1));
}

Test(lines, launches_that_cannot_be_used_are_refused) {
    enum { N_WAYS = 15 };
    for (int how = -1; how < N_WAYS; how++) {
        struct nb_launch_line l released_by(nb_launch_line_release);
        cJSON *line = kept_json(launch_line(0, 100));
        break_line(line, how);
        cr_expect_eq(nb_launch_line_read(&l, line, &(struct nb_floors){0}), how < 0 ? 0 : -1, "broken by way %d", how);
    }
}

static void add_probes(cJSON *line, const int *probes) {
    cJSON *arm;
    cJSON_ArrayForEach(arm, nb_json_get(line, "cases"))
        cJSON_AddItemToObject(arm, "probe", cJSON_CreateIntArray(probes, 3));
}

Test(lines, probes_are_read_with_the_floor_of_their_cpu) {
    static const double quiet[] = {1000, 1000, 1000};
    struct nb_floors floors released_by(nb_floors_release) = {0};
    struct nb_launch_line l released_by(nb_launch_line_release);
    cJSON *line = kept_json(launch_line(0, 100));
    const int cpu = nb_json_get_index(nb_json_get(line, "noise"), "cpu");
    nb_floors_take(&floors, cpu, 1, quiet, 3);
    nb_floors_take(&floors, cpu + 1, 1, (const double[]){500}, 1);
    add_probes(line, (const int[]){1000, 2000, 1000});
    cr_assert_eq(nb_launch_line_read(&l, line, &floors), 0);
    const struct nb_contention c = nb_samples_contention(&l.arms[0].samples);
    cr_expect_float_eq(l.arms[0].samples.floor, 1000, 3, "in bins of half a percent");
    cr_expect(l.arms[0].samples.probe[1] == 2000 && !l.arms[l.n_cases].samples.probe, "absent: not probed");
    cr_expect(c.n_probed > 0 && c.n_contended <= 1);
}

/* Seven launches on two CPUs, one of which is slower; of CPU 0 the last was beside somebody throughout. */
Test(lines, a_launch_is_contended_by_the_floor_of_its_cpu_over_the_run) {
    static const int cycles[] = {6000, 6050, 6100, 9000, 9100, 9050, 9000}, cpus[] = {0, 0, 0, 1, 1, 1, 0};
    enum { N = 7 };
    char *dir = new_folder();
    struct nb_journal j;
    cr_assert_eq(nb_journal_create(&j, dir), 0);
    write_text(&j, run_of_three(N));
    write_text(&j, "{\"type\":\"check\",\"group\":0,\"cases\":[{\"key\":\"" KEY_RMS
                   "\",\"status\":\"ok\",\"summation_depth\":8,\"row_local\":true}]}");
    for (int l = 0; l < N; l++) {
        cJSON *line = launch_line(l, 100), *noise = nb_json_get(line, "noise");
        cJSON_DeleteItemFromObject(noise, "cpu");
        nb_json_number(noise, "cpu", cpus[l]);
        add_probes(line, (const int[]){cycles[l], cycles[l], cycles[l]});
        write_line(&j, line);
    }
    nb_journal_close(&j);
    struct nb_results r released_by(nb_results_release) = results_of(dir);
    cr_assert(r.records[0].has_timing);
    cr_expect_float_eq(r.records[0].timing.uncontended, 6.0 / 7, 1e-12);
}

/* ---- checks ---- */

static const struct nb_check_line checked[] = {
    {.key = KEY_RMS, .status = NB_OK, .facts = {.summation_depth = 8, .row_local = true}, .has_metamorphic = true},
    {.key = KEY_LN, .status = NB_OUT_OF_RANGE, .reason = "r \x01\"", .has_accuracy = true, .has_evidence = true},
    {.key = KEY_PLUGIN,
     .status = NB_SKIPPED,
     .facts = {.summation_depth = 1, .column_summation_depth = 2, .library = "l", .implementation = "i"}}};

Test(lines, a_checked_case_is_read_again_as_it_was) {
    for (size_t i = 0; i < sizeof checked / sizeof checked[0]; i++) {
        struct nb_check_line l;
        cJSON *line = kept_json(nb_check_line_to_json(&checked[i], NB_NUM_F32));
        cr_assert_eq(nb_check_line_read(&l, line), 0, "%s", checked[i].key);
        cJSON *again = kept_json(nb_check_line_to_json(&l, NB_NUM_F32));
        cr_expect(cJSON_Compare(line, again, true), "%s", checked[i].key);
    }
}

Test(lines, checks_that_cannot_be_used_are_refused) {
    static const char *const wrong[] = {
        "{\"key\":\"k\",\"status\":\"not_run\",\"summation_depth\":1,\"row_local\":true}",
        "{\"key\":\"k\",\"status\":\"fine\",\"summation_depth\":1,\"row_local\":true}",
        "{\"key\":\"k\",\"summation_depth\":1,\"row_local\":true}",
        "{\"status\":\"ok\",\"summation_depth\":1,\"row_local\":true}",
        "{\"key\":\"k\",\"status\":\"ok\",\"summation_depth\":-1,\"row_local\":true}",
        "{\"key\":\"k\",\"status\":\"ok\",\"summation_depth\":1,\"column_summation_depth\":0.5,\"row_local\":true}",
        "{\"key\":\"k\",\"status\":\"ok\",\"summation_depth\":1,\"row_local\":true,\"accuracy\":{\"n\":-1}}",
        "{\"key\":\"k\",\"status\":\"ok\",\"summation_depth\":1,\"row_local\":true,\"metamorphic\":{\"order\":{\"verdict\":\"?\"}}}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct nb_check_line l;
        cr_expect_eq(nb_check_line_read(&l, kept_json(cJSON_Parse(wrong[i]))), -1, "%s", wrong[i]);
    }
}

Test(lines, counters_that_cannot_be_used_are_refused) {
    static const char *const wrong[] = {"{\"counters\":[{\"name\":\"\",\"source\":\"s\"}]}",
                                        "{\"counters\":[{\"name\":\"n\"}]}", "{\"counters\":[{\"source\":\"s\"}]}"};
    struct nb_counter counters[NB_MAX_COUNTERS];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_expect_eq(nb_counters_read(counters, kept_json(cJSON_Parse(wrong[i]))), -1, "%s", wrong[i]);
    cr_expect_eq(nb_counters_read(counters, kept_json(cJSON_Parse("{\"counters\":[]}"))), 0);
}
