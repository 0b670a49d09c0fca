// SPDX-License-Identifier: Apache-2.0
/* Journals made by hand, folded: expected figures are worked out here from the definitions. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/text.h"
#include "src/measure/journal.h"
#include "src/measure/paired.h"
#include "src/record/record.h"
#include "tests/support/files.h"
#include "tests/support/runs.h"

#define assert_near(a, b)                                                                                              \
    cr_assert(fabs((a) - (b)) <= 1e-12 * fabs((double)(b)), "%.17g, expected %.17g", (double)(a), (double)(b))

/* What a test folds. */
static struct nb_results r;

TestSuite(results, .init = quiet);

static const struct nb_record *find(const char *key) {
    for (size_t i = 0; i < r.n; i++)
        if (strcmp(r.records[i].key, key) == 0) return &r.records[i];
    cr_assert_fail("no record of %s", key);
    return NULL;
}

/* The journal with the first line that holds `mark` left out, or replaced. Owned. */
static char *without(const char *journal, const char *mark, const char *instead) {
    struct nb_strbuf out = {0};
    const char *hit = strstr(journal, mark), *start = hit;
    cr_assert_not_null(hit);
    while (start > journal && start[-1] != '\n') start--;
    nb_strbuf_addn(&out, journal, (size_t)(start - journal));
    nb_strbuf_add(&out, instead);
    nb_strbuf_add(&out, hit + strcspn(hit, "\n") + 1);
    return kept(out.text);
}

Test(results, figures_of_a_small_journal_are_those_of_the_definitions) {
    char *journal = small_journal();
    r = folded(journal);
    cr_assert_eq(r.n, 3);
    /* Launch l: samples of KEY_LN are 2 (100 + l) and 1.5 times that, so the median is 2.5 (100 + l). */
    const struct nb_record *ln = find(KEY_LN);
    cr_assert_eq(ln->status, NB_OK);
    cr_assert_eq(ln->group, 4);
    assert_near(ln->timing.time_ns.low, 250);
    assert_near(ln->timing.time_ns.high, 262.5);
    /* 21 pairwise means of ln(100 + l): the 11th is the middle one, that of l = 1 and 4 or of 0 and 5 or of 2 and 3; sorted
     * by the concavity of ln they come as (0,5) < (1,4) < (2,3), ranks 10 to 12. */
    assert_near(ln->timing.time_ns.value, 2.5 * sqrt(101.0 * 104.0));
    /* Paired with the copy's 50 and 75: 50 / 2(100 + l) in both blocks. Against the reference 2 in every block. */
    assert_near(ln->timing.vs_copy.low, 25.0 / 105);
    assert_near(ln->timing.vs_copy.high, 0.25);
    assert_near(ln->timing.vs_reference.value, 2);
    assert_near(ln->timing.vs_reference.low, 2);
    assert_near(ln->timing.gbytes_per_s, nb_case_bytes(&ln->c) / ln->timing.time_ns.value);
    assert_near(ln->timing.min_ns, 200);
    cr_assert_eq(ln->timing.n_launches, 6);
    cr_assert_eq(ln->timing.n_samples, 12);
    cr_assert_eq(ln->timing.n_preempted, 1);
    assert_near(ln->timing.steal_ms, 15);
    assert_near(ln->timing.wall_per_cpu, 1.25);
    assert_near(ln->timing.copy_drift, 1);
    cr_assert_str_eq(ln->timing.reference, KEY_RMS);
    cr_assert_str_eq(ln->timing.copy, "copy_v256_f32");
    cr_assert_not(ln->timing.noisy, "%s", ln->timing.noise);
    assert_near(find(KEY_RMS)->timing.vs_reference.value, 1);
    cr_assert_eq(find(KEY_RMS)->n_counters, 2);
    cr_assert_eq(ln->accuracy.mean_ulp, 0.3333333333333333);
    cr_assert(nb_json_get_bool(r.meta, "complete"));
    cr_assert_eq(nb_json_get_number(r.meta, "elapsed_s"), 3.5);
    cr_assert_eq(nb_results_failed(&r), 0);
}

Test(results, replay_lines_are_quoted_and_name_the_plugin) {
    char *journal = small_journal();
    r = folded(journal);
    cr_assert_str_eq(find(KEY_RMS)->replay, "normbench replay '" KEY_RMS "'");
    cr_assert_str_eq(find(KEY_PLUGIN)->replay, "normbench replay '" KEY_PLUGIN "' --plugin '/opt/it'\\''s mine.so'");
}

Test(results, a_failure_overrides_what_was_measured_and_its_times_are_no_times) {
    char *whole = small_journal();
    char *journal = without(whole, "\"type\":\"end\"",
                            "{\"type\":\"failure\",\"group\":0,\"launch\":5,\"key\":\"" KEY_LN
                            "\",\"status\":\"wrong_when_timed\",\"reason\":\"row 2 differs\"}\n"
                            "{\"type\":\"failure\",\"group\":0,\"launch\":5,\"key\":\"" KEY_LN
                            "\",\"status\":\"crashed\",\"reason\":\"later\"}\n");
    r = folded(journal);
    const struct nb_record *ln = find(KEY_LN);
    cr_assert_eq(ln->status, NB_WRONG_WHEN_TIMED);
    cr_assert_str_eq(ln->reason, "row 2 differs");
    cr_assert_not(ln->has_timing);
    cr_assert(ln->has_accuracy);
    cr_assert_eq(nb_results_failed(&r), 1);
    cr_assert(find(KEY_RMS)->has_timing);
    cr_assert(isnan(nb_json_get_number(r.meta, "elapsed_s")), "without an end line the time is not known");
}

Test(results, a_reference_that_failed_leaves_the_others_without_a_ratio_to_it) {
    static const char *const launches[] = {"\"launch\":0", "\"launch\":1", "\"launch\":2",
                                           "\"launch\":3", "\"launch\":4", "\"launch\":5"};
    char *journal = small_journal();
    for (int i = 0; i < 6; i++) {
        char line[400];
        snprintf(line, sizeof line,
                 "{\"type\":\"launch\",\"group\":0,\"launch\":%d,\"cases\":[{\"key\":\"" KEY_LN
                 "\",\"copy\":null,\"sample_ns\":[10],\"per_sample\":1,\"chunked\":true,\"preempted\":[]}],"
                 "\"copies\":[],\"noise\":{\"cpu\":1},\"elapsed_s\":1}\n",
                 i);
        journal = without(journal, launches[i], line);
    }
    r = folded(journal);
    const struct nb_timing *t = &find(KEY_LN)->timing;
    assert_near(t->time_ns.value, 10);
    cr_assert(isnan(t->vs_reference.value) && isnan(t->vs_copy.value));
    cr_assert_str_eq(t->copy, "");
    cr_assert(t->chunked);
    cr_assert_eq(find(KEY_RMS)->status, NB_NOT_RUN);
}

Test(results, every_planned_case_has_a_record_wherever_the_journal_ends) {
    char *journal = small_journal();
    for (const char *end = strchr(journal, '\n'); end; end = strchr(end + 1, '\n')) {
        char *start freed = strndup(journal, (size_t)(end - journal) + 1);
        r = folded(start);
        bool checked = strstr(start, "\"check\""), timed = strstr(start, "\"type\":\"launch\"");
        bool all = strstr(start, "\"launch\":5");
        cr_assert_eq(r.n, 3);
        for (size_t i = 0; i < r.n; i++) {
            const struct nb_record *record = &r.records[i];
            cr_assert_eq(record->status, timed ? NB_OK : NB_NOT_RUN);
            cr_assert_eq(record->has_accuracy, checked);
            cr_assert_eq(record->has_timing, timed);
            cr_assert_eq(record->reason == NULL, timed, "what did not run says why");
            if (timed) cr_assert_eq(record->timing.noisy, !all);
        }
        cr_assert_eq(nb_json_get_bool(r.meta, "complete"), all);
    }
}

Test(results, skipped_cases_have_records_with_their_reason) {
    char *run = run_line("[]",
                         "[{\"reason\":\"this CPU has no AVX-512\",\"count\":1,\"key\":\"" KEY_RMS "\"},"
                         "{\"reason\":\"no kernel\",\"count\":5}]",
                         "null", 6);
    r = folded(run);
    cr_assert_eq(r.n, 1);
    cr_assert_eq(r.records[0].status, NB_SKIPPED);
    cr_assert_str_eq(r.records[0].reason, "this CPU has no AVX-512");
    cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItem(r.meta, "skips")), 2);
    cr_assert_eq(nb_results_failed(&r), 0);
}

Test(results, the_reference_of_a_split_group_is_reported_once_from_its_first_part) {
    char *run = run_line("[{\"index\":0,\"part\":0,\"keys\":[\"" KEY_RMS "\",\"" KEY_LN "\"],\"reference\":0},"
                         "{\"index\":1,\"part\":1,\"keys\":[\"" KEY_RMS "\",\"" KEY_PLUGIN "\"],\"reference\":0}]",
                         "[]", "null", 1);
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(&text, run);
    static const char *const keys[][2] = {{KEY_RMS, KEY_LN}, {KEY_RMS, KEY_PLUGIN}};
    for (int part = 0; part < 2; part++) add_check(&text, part, keys[part], 2);
    add_launch(&text, 1, 0, keys[1], 2, (const double[]){1000, 3000}, 1);
    add_launch(&text, 0, 0, keys[0], 2, (const double[]){10, 20}, 1);
    r = folded(text.text);
    cr_assert_eq(r.n, 3);
    assert_near(find(KEY_RMS)->timing.time_ns.value, 10);
    assert_near(find(KEY_LN)->timing.vs_reference.value, 2);
    assert_near(find(KEY_PLUGIN)->timing.vs_reference.value, 3);
    cr_assert_eq(find(KEY_RMS)->group, 0);
    nb_strbuf_add(&text, "{\"type\":\"failure\",\"group\":1,\"launch\":0,\"key\":\"" KEY_RMS
                         "\",\"status\":\"crashed\",\"reason\":\"signal 11\"}\n");
    r = folded(text.text);
    cr_assert_eq(find(KEY_RMS)->status, NB_CRASHED, "a reference that fails in a later part has failed");
}

static int fold(const char *dir) {
    struct nb_results any released_by(nb_results_release);
    const int result = nb_results_fold(&any, dir);
    cr_assert(result != 0 || any.n <= 3);
    return result;
}

Test(results, lines_that_contradict_the_plan_are_errors_with_their_place) {
    static const char *const wrong[] = {
        "{\"type\":\"surprise\"}",
        "{\"type\":\"check\",\"group\":1,\"cases\":[]}",
        "{\"type\":\"check\",\"group\":-1,\"cases\":[]}",
        "{\"type\":\"check\",\"group\":0,\"cases\":[{\"key\":\"other/shape:1x1\",\"status\":\"ok\"}]}",
        "{\"type\":\"check\",\"group\":0,\"cases\":[{\"key\":\"" KEY_RMS "\",\"status\":\"ok\"}]}", /* a second time */
        "{\"type\":\"launch\",\"group\":0,\"launch\":6,\"cases\":[],\"copies\":[]}",
        "{\"type\":\"launch\",\"group\":0,\"launch\":0,\"cases\":[{\"key\":\"" KEY_RMS "\",\"sample_ns\":[1]}]}",
        "{\"type\":\"failure\",\"group\":0,\"launch\":0,\"key\":\"" KEY_RMS "\",\"status\":\"ok\",\"reason\":\"\"}",
        "{\"type\":\"failure\",\"group\":0,\"launch\":0,\"key\":\"" KEY_RMS "\",\"status\":\"bored\",\"reason\":\"\"}",
        "{\"type\":\"counters\",\"group\":0,\"cases\":[{\"key\":\"" KEY_RMS "\",\"counters\":[]}]}",
        "{\"type\":\"run\",\"schema\":\"3.0\"}",
    };
    char *journal = small_journal(), *dir = new_folder();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *text freed = nb_textf("%s%s\n", journal, wrong[i]);
        put_journal(dir, text);
        expect_refused(fold(dir), wrong[i], NB_JOURNAL_FILE ":11:");
    }
}

/* One text of the journal in place of another; a reader can do without the first four. */
Test(results, journals_that_contradict_themselves_are_refused) {
    static const char *const changes[][2] = {
        {"\"plugins\":[", "\"others\":["},
        {"\"config\":", "\"others\":"},
        {"\"launch\":2,\"cases\":", "\"launch\":2,\"others\":"},
        {"\"type\":\"check\",\"group\":0,\"cases\":", "\"type\":\"check\",\"group\":0,\"others\":"},
        {"\"variant\":\"rmsnorm_a_v256_f32\",", ""},
        {"\"variant\":\"rmsnorm_a_v256_f32\"", "\"variant\":\"rmsnorm_c_v256_f32\""},
        {"\"variant\":\"layernorm_a_v256_f32\"", "\"variant\":\"rmsnorm_a_v256_f32\""},
        {"\"launches\":6", "\"launches\":-6"},
        {"\"op\":\"rmsnorm\"", "\"op\":\"nothing\""},
        {"\"keys\":[\"" KEY_RMS "\"", "\"keys\":[1"},
        {"\"" KEY_LN "\"", "\"" KEY_RMS "\""},
        {"\"reference\":0", "\"reference\":3"},
        {"\"reference\":0", "\"reference\":0,\"labels\":[[0],[],[]]"},
        {"\"keys\":[\"" KEY_RMS, "\"keys\":[\"/shape:4x8"},
        {"\"keys\":", "\"others\":"},
        {"\"index\":4", "\"index\":-4"},
        {"\"status\":\"ok\"", "\"status\":\"fine\""},
        {"{\"type\":\"launch\",\"group\":0,\"launch\":3", "{\"type\":\"launch\",\"group\":0,\"launch\":33"},
        {"{\"type\":\"launch\",\"group\":0,\"launch\":3", "{\"type\":\"launch\",\"group\":5,\"launch\":3"},
        {"\"sample_ns\":[50,50,75]", "\"sample_ns\":[50,-50,75]"},
        {"\"sample_ns\":[100,null,150],", ""},
        {"{\"key\":\"" KEY_RMS "\",\"copy\"", "{\"key\":\"other\",\"copy\""},
        {"{\"key\":\"" KEY_RMS "\",\"counters\"", "{\"key\":\"other\",\"counters\""},
        {"\"preempted\":[2]", "\"preempted\":7"},
        {"\"max_ulp\":1.25", "\"max_ulp\":\"x\""},
        {"\"reproducer\":{\"row\":3", "\"reproducer\":{\"row\":-3"},
    };
    char *dir = new_folder();
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        put_journal(dir, small_journal());
        change_journal(dir, changes[i][0], changes[i][1]);
        cr_expect_eq(fold(dir), i < 4 ? 0 : -1, "%s", changes[i][1]);
        struct nb_sample_table samples; /* another reader, which takes or refuses it */
        if (nb_sample_table_read(&samples, dir) == 0) nb_sample_table_release(&samples);
    }
    struct nb_strbuf end released_by(nb_strbuf_release) = {0};
    add_end(&end);
    put_journal(dir, end.text);
    expect_refused(fold(dir), end.text, ":1: is not the \"run\" line");
}
