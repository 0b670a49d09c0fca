// SPDX-License-Identifier: Apache-2.0
/* Two runs made by hand: what is ranked, what is refused and why, what is said of the machines. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "src/core/log.h"
#include "src/record/record.h"
#include "tests/support/files.h"
#include "tests/support/reports.h"

static const char fingerprint[] =
    "{\"config\":\"quick\",\"started\":\"2026-01-31T12:00:00Z\",\"plan\":{\"hash\":\"12\",\"launches\":6,\"blocks\":8,"
    "\"sample_ms\":0.3},\"fingerprint\":{\"build\":{\"commit\":\"abc\",\"compiler\":\"gcc "
    "12\"},\"cpu\":{\"vendor\":\"V\","
    "\"model\":\"Some CPU\",\"family\":26,\"microcode\":\"0x1\"},\"system\":{\"kernel\":\"Linux 6.1\"},"
    "\"kernels\":[{\"file\":\"/a/lib.so\",\"hash\":\"01\"}],\"libraries\":{\"libc\":\"2.36\"}}}";

static struct nb_results new_run(void) {
    nb_test_plain_terminal();
    return (struct nb_results){.meta = cJSON_Parse(fingerprint), .dir = nb_strdup("results/one")};
}

/* A case and the reference that its ratio is to: reference times are of no run in the test. */
static struct nb_record *add(struct nb_results *r, const char *shape, double time_ns, double vs_copy, double ratio) {
    struct nb_record *c = nb_test_add(r, "rmsnorm_twopass_v256_f32", NB_OP_RMSNORM, shape);
    nb_test_times(c, time_ns, (struct nb_interval){ratio, 0.99 * ratio, 1.01 * ratio}, "layernorm_v256_f32/shape:4x8");
    c->timing.vs_copy = (struct nb_interval){vs_copy, 0.99 * vs_copy, 1.01 * vs_copy};
    c->timing.wall_per_cpu = 1;
    nb_test_accuracy(c, 1.5, 0.25);
    return c;
}

static const struct nb_filters all = {NULL, 0};

/* The runs of a test, and their comparison. */
static struct nb_results before, after;
static struct nb_comparison c;

static void begin(void) {
    before = new_run();
    after = new_run();
}
static void release(void) {
    nb_comparison_release(&c);
    nb_results_release(&before);
    nb_results_release(&after);
}
TestSuite(comparison, .init = begin, .fini = release);

static void compare(void) {
    nb_comparison_release(&c);
    cr_assert_eq(nb_comparison_make(&c, &before, &after, &all), 0);
}

static void set_text(struct nb_results *r, const char *section, const char *name, const char *text) {
    cJSON *fingerprint_json = cJSON_GetObjectItem(r->meta, "fingerprint");
    cJSON_ReplaceItemInObject(cJSON_GetObjectItem(fingerprint_json, section), name, cJSON_CreateString(text));
}

static char *print(const char *format) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    cr_assert_eq(nb_compare_print(&c, 1, format, out), 0);
    fclose(out);
    return kept(text);
}

static struct nb_record *usual(struct nb_results *r, const char *shape) { return add(r, shape, 1000, 0.5, 0.8); }

/* The record after. */
static struct nb_record *run_twice(void) {
    usual(&before, "64x256");
    return usual(&after, "64x256");
}

/* A smaller share of the copy is slower, and so is a larger ratio to the reference; times alone rank nothing. */
Test(comparison, copy_and_reference_rank_and_contradict_each_other) {
    static const struct {
        double time_ns, vs_copy, ratio;
        enum nb_change change;
    } cases[] = {{1000, 0.5, 0.8, NB_CHANGE_NOT_SHOWN},
                 {3000, 0.5, 0.8, NB_CHANGE_NOT_SHOWN},
                 {1500, 0.4, 1.0, NB_CHANGE_SLOWER},
                 {900, 0.6, 0.7, NB_CHANGE_FASTER},
                 {1000, 0.4, 0.7, NB_CHANGE_MIXED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        release();
        begin();
        usual(&before, "64x256");
        add(&after, "64x256", cases[i].time_ns, cases[i].vs_copy, cases[i].ratio);
        compare();
        const struct nb_compared *one = &c.cases[0];
        cr_expect_eq(one->change, cases[i].change, "case %zu", i);
        cr_expect_float_eq(one->to_copy.value, 0.5 / cases[i].vs_copy, 1e-12);
        cr_expect_float_eq(one->to_reference.value, cases[i].ratio / 0.8, 1e-12);
        cr_expect_float_eq(one->time.value, cases[i].time_ns / 1000, 1e-12);
        /* Bounds at 0.99 and 1.01 of either: of the quotient exp(-+ sqrt(ln(1 / 0.99)^2 + ln(1.01)^2)). */
        const double reach = hypot(log(1 / 0.99), log(1.01));
        cr_expect_float_eq(one->to_copy.low, one->to_copy.value * exp(-reach), 1e-12);
        cr_expect(c.n_differences == 0 && c.same_cpu && c.same_plan && nb_comparison_is_whole(&c));
    }
}

Test(comparison, another_cpu_forbids_times_but_not_ratios) {
    usual(&before, "64x256");
    add(&after, "64x256", 900, 0.6, 0.7);
    set_text(&after, "cpu", "model", "Another CPU");
    set_text(&after, "cpu", "microcode", "0x2");
    set_text(&after, "build", "commit", "def");
    compare();
    cr_expect(!c.same_cpu && !nb_comparison_is_whole(&c));
    cr_expect_eq(c.n_differences, 3);
    cr_expect_str_eq(c.differences[0].path, "cpu.model");
    cr_expect_str_eq(c.differences[0].values[NB_BEFORE], "Some CPU");
    cr_expect_str_eq(c.differences[0].values[NB_AFTER], "Another CPU");
    cr_expect(c.differences[0].forbids_times);
    cr_expect(!c.differences[1].forbids_times, "%s", c.differences[1].path);
    cr_expect_str_eq(c.differences[2].path, "build.commit");
    cr_expect_str_eq(c.cases[0].time_reason, "different CPUs");
    cr_expect_eq(c.cases[0].change, NB_CHANGE_FASTER);
}

Test(comparison, a_cpu_that_is_not_known_is_not_the_same) {
    run_twice();
    cJSON_DeleteItemFromObjectCaseSensitive(before.meta, "fingerprint");
    cJSON_DeleteItemFromObjectCaseSensitive(after.meta, "fingerprint");
    compare();
    cr_expect(!c.same_cpu);
}

Test(comparison, kernels_are_told_apart_by_content_not_by_place) {
    run_twice();
    cJSON *kernel = cJSON_GetObjectItem(cJSON_GetObjectItem(after.meta, "fingerprint"), "kernels")->child;
    cJSON_ReplaceItemInObject(kernel, "file", cJSON_CreateString("/elsewhere/lib.so"));
    compare();
    cr_expect_eq(c.n_differences, 0);
    cJSON_ReplaceItemInObject(kernel, "hash", cJSON_CreateString("02"));
    compare();
    cr_assert_eq(c.n_differences, 1);
    cr_expect_str_eq(c.differences[0].path, "kernels");
}

/* What one change to the record after makes of the case. */
static const struct nb_compared *refusal(void (*spoil)(struct nb_record *r)) {
    release();
    begin();
    spoil(run_twice());
    compare();
    cr_expect_eq(nb_comparison_is_whole(&c), c.cases[0].change != NB_CHANGE_REFUSED);
    return &c.cases[0];
}

static void make_noisy(struct nb_record *r) {
    r->timing.noisy = true;
    snprintf(r->timing.noise, sizeof r->timing.noise, "a neighbour");
}
static void make_suspect(struct nb_record *r) { r->timing.suspect = true; }
static void make_failed(struct nb_record *r) { r->status = NB_INACCURATE; }
static void make_untimed(struct nb_record *r) { r->has_timing = false; }
static void make_wider(struct nb_record *r) { r->c.width = NB_512; }
static void make_reshaped(struct nb_record *r) { snprintf(r->c.shape.text, sizeof r->c.shape.text, "8x8x256"); }
static void make_unbounded(struct nb_record *r) { r->timing.vs_copy.low = r->timing.vs_copy.high = NAN; }
static void make_other_copy(struct nb_record *r) {
    snprintf(r->timing.copy, sizeof r->timing.copy, "copy_2r1w_v256_f32");
}
static void make_other_pair(struct nb_record *r) {
    make_other_copy(r);
    r->timing.reference[0] = 'x';
}

Test(comparison, what_is_not_comparable_is_refused_with_the_reason) {
    static const struct {
        void (*spoil)(struct nb_record *r);
        const char *reason;
    } spoils[] = {{make_noisy, "noisy after: a neighbour"},
                  {make_suspect, "faster than the copy after"},
                  {make_failed, "inaccurate after"},
                  {make_untimed, "not timed after"},
                  {make_wider, "another width under the same key"},
                  {make_reshaped, "another shape under the same key"},
                  {make_unbounded, "no interval: fewer than 6 launches"},
                  {make_other_pair, "no ratio to the copy or to a reference in both runs"}};
    for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++) {
        const struct nb_compared *one = refusal(spoils[i].spoil);
        cr_expect_eq(one->change, NB_CHANGE_REFUSED, "%s", spoils[i].reason);
        cr_expect_str_eq(one->refused, spoils[i].reason);
    }
}

Test(comparison, without_a_common_copy_the_reference_ranks) {
    const struct nb_compared *one = refusal(make_other_copy);
    cr_expect_str_eq(one->copy_reason, "another copy");
    cr_expect_eq(one->change, NB_CHANGE_NOT_SHOWN);
    cr_expect(isnan(one->to_copy.value) && one->to_reference.value == 1);
}

Test(comparison, another_plan_ranks_nothing_and_other_cases_alone_do_not_hinder) {
    run_twice();
    cJSON *plan = cJSON_GetObjectItem(after.meta, "plan");
    cJSON_ReplaceItemInObject(plan, "hash", cJSON_CreateString("34"));
    compare();
    cr_expect_eq(c.cases[0].change, NB_CHANGE_NOT_SHOWN);
    cr_assert_eq(c.n_differences, 1);
    cr_expect_str_eq(c.differences[0].path, "plan.hash");
    cJSON_ReplaceItemInObject(plan, "sample_ms", cJSON_CreateNumber(0.2));
    compare();
    cr_expect_eq(c.cases[0].change, NB_CHANGE_REFUSED);
    cr_expect(!c.same_plan && !nb_comparison_is_whole(&c));
}

Test(comparison, the_most_slowed_come_first_and_what_is_in_one_run_last) {
    static const char *const shapes[] = {"64x256", "64x512", "64x768", "64x1024"};
    for (int i = 0; i < 4; i++) usual(&before, shapes[i]);
    usual(&after, "64x2048");
    make_noisy(add(&after, "64x256", 1000, 0.1, 0.8));
    add(&after, "64x512", 1000, 0.6, 0.8);
    add(&after, "64x768", 1000, 0.3, 0.8);
    compare();
    cr_assert_eq(c.n_common, 3);
    cr_expect_str_eq(c.cases[c.order[0]].sides[NB_BEFORE]->c.shape.text, "64x768");
    cr_expect_str_eq(c.cases[c.order[1]].sides[NB_BEFORE]->c.shape.text, "64x512");
    cr_expect_eq(c.cases[c.order[2]].change, NB_CHANGE_REFUSED);
    cr_expect(c.n_only[NB_BEFORE] == 1 && c.n_only[NB_AFTER] == 1 && !nb_comparison_is_whole(&c));
    cr_expect_str_eq(c.cases[3].sides[NB_BEFORE]->c.shape.text, "64x1024");
    cr_expect_null(c.cases[3].sides[NB_AFTER]);
    cr_expect_str_eq(c.cases[4].sides[NB_AFTER]->c.shape.text, "64x2048");
}

Test(comparison, accuracy_and_status_that_changed_are_listed) {
    run_twice()->accuracy.max_ulp = 2.5;
    usual(&before, "64x512");
    usual(&after, "64x512")->status = NB_OUT_OF_RANGE;
    usual(&before, "64x768");
    usual(&after, "64x768");
    compare();
    cr_expect_eq(c.n_inaccurate, 2);
    char *text = print("table");
    const char *accuracy = strstr(text, "\nAccuracy\n");
    cr_assert_not_null(accuracy, "%s", text);
    HAS(accuracy, "1.500  2.500", "ok -> out_of_range");
}

Test(comparison, nothing_left_to_compare_is_an_error) {
    usual(&before, "64x256");
    const char *texts[] = {"nothing-like-this"};
    const struct nb_filters none = {texts, 1};
    expect_refused(nb_comparison_make(&c, &before, &after, &none), texts[0], "no case");
}

Test(comparison, names_stay_text) {
    run_twice();
    set_text(&after, "cpu", "model", "<b>\033[31m|\n## x");
    free(after.dir);
    after.dir = nb_strdup("a|b\033[2J<i>");
    compare();
    char *table = print("table"), *markdown = print("markdown"), *json = print("json");
    cr_expect_null(strchr(table, '\033'));
    cr_expect_null(strchr(markdown, '\033'));
    LACKS(markdown, "<b>", "\n## x");
    cJSON *parsed = kept_json(cJSON_Parse(json));
    cr_expect_not_null(parsed);
}
