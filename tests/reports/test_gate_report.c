// SPDX-License-Identifier: Apache-2.0
/* What each format says of a gate made by hand: every verdict, none at all, figures that are not there, names that attack. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/gate/gate_report.c"
#include "src/core/json.h"
#include "src/core/log.h"
#include "tests/support/files.h"
#include "tests/support/reports.h"

enum { N_LAUNCHES = 12 };

/* What a test prints. */
static struct nb_gate g;

static void begin(void) {
    nb_test_plain_terminal();
    nb_gate_init(&g);
    g.subject = &nb_gate_kernels;
}
static void release(void) { nb_gate_release(&g); }
TestSuite(gate_report, .init = begin, .fini = release);

static struct nb_gate_case *add_case(const char *key, enum nb_verdict verdict, const char *reason) {
    struct nb_gate_case *c = nb_gate_add_case(&g, key, 1);
    c->seconds = 1.5;
    nb_gate_decide(c, verdict, "%s", reason);
    return c;
}

/* Launches that alternate about the ratio, and the judgement that they come to. */
static void time_case(struct nb_gate_case *c, double ratio, double control) {
    c->launches.launches = nb_alloc(N_LAUNCHES, sizeof *c->launches.launches);
    c->launches.n_screen = N_LAUNCHES;
    for (int i = 0; i < N_LAUNCHES; i++)
        c->launches.launches[i] = (struct nb_gate_launch){.ratio = log(ratio) + (i % 2 ? 0.001 : -0.001),
                                                          .control = log(control),
                                                          .ratio_min = log(ratio),
                                                          .order_effect = NAN,
                                                          .preempted = 0.01};
    const struct nb_gate_evidence e = {.launches = c->launches.launches, .n_screen = N_LAUNCHES, .n_confirming = 1};
    nb_gate_judge(&e, &nb_gate_rule_default, &c->judgement);
    for (int b = 0; b < NB_N_BUILDS; b++) c->call_ns[b] = 1000;
}

static void add_every_verdict(void) {
    g.builds.n_layouts = 1;
    g.elapsed_s = 20;
    add_case("same_v256_f32/shape:4x8", NB_VERDICT_IDENTICAL, "");
    time_case(add_case("passed_v256_f32/shape:4x8", NB_VERDICT_PASS, ""), 1.002, 1.0005);
    time_case(add_case("better_v256_f32/shape:4x8", NB_VERDICT_IMPROVED, ""), 0.9, 0.9995);
    time_case(add_case("open_v256_f32/shape:4x8", NB_VERDICT_INCONCLUSIVE, "it cannot be told"), 1.02, 1.0005);
    add_case("new_v256_f32/shape:4x8", NB_VERDICT_NOT_COMPARABLE, "the baseline has no such kernel");
    time_case(add_case("slow_v256_f32/shape:4x8", NB_VERDICT_REGRESSION, "slower by 4.1% at least"), 1.05, 0.9995);
    add_case("loose_v256_f32/shape:4x8", NB_VERDICT_LESS_ACCURATE, "largest error 9 ulp, the baseline's 3");
    add_case("bad_v256_f32/shape:4x8", NB_VERDICT_WRONG, "inaccurate: row 3");
}

static char *print(const char *format) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    cr_assert_eq(nb_gate_print(&g, format, out), 0);
    fclose(out);
    return kept(text);
}

Test(gate_report, table_puts_the_worst_first_and_says_what_to_do) {
    add_every_verdict();
    char *text = print("table");
    static const char *const order[] = {"\nWRONG ",          "\nLESS ACCURATE ",       "\nREGRESSION ",
                                        "\nNOT COMPARABLE ", "\nINCONCLUSIVE ",        "\nIMPROVED",
                                        "\nPASS  ",          "\nPASS (identical code)"};
    const char *at = text;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const char *found = strstr(at, order[i]);
        cr_assert(found, "%s is not behind the worse ones:\n%s", order[i], text);
        at = found;
    }
    HAS(text, "All cases: shape 4x8\n",
        "8 cases: 1 WRONG, 1 LESS ACCURATE, 1 REGRESSION, 1 NOT COMPARABLE, 1 INCONCLUSIVE, 1 IMPROVED, 1 PASS, "
        "1 PASS (identical code); 20 s",
        "REGRESSION slow_v256_f32: slower by 4.1% at least\n", "One memory layout compared");
    cr_expect(strncmp(text, "WRONG. 8 cases: ", 16) == 0, "the answer comes first:\n%s", text);
    HAS(text, "+5.00%  [4.90, 5.11]");
}

Test(gate_report, table_fits_a_narrow_terminal) {
    add_every_verdict();
    setenv("COLUMNS", "50", 1);
    char *text = print("table");
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        cr_expect(strcspn(line, "\n") <= 50, "%.*s", (int)strcspn(line, "\n"), line);
    HAS(text, "+5.00%");
    LACKS(text, "launches  s\n");
}

Test(gate_report, junit_tells_failures_from_skips) {
    add_every_verdict();
    char *text = print("junit");
    HAS(text,
        "<testsuite name=\"normbench gate\" tests=\"8\" failures=\"3\" errors=\"0\" skipped=\"2\" time=\"20.000\">");
    cr_expect_eq(times_in(text, "<testcase "), 8);
    cr_expect_eq(times_in(text, "<failure "), 3);
    cr_expect_eq(times_in(text, "<skipped "), 2);
    HAS(text, "<failure type=\"REGRESSION\" message=\"slower by 4.1% at least\">",
        "<failure type=\"WRONG\" message=\"inaccurate: row 3\">",
        "<failure type=\"LESS ACCURATE\" message=\"largest error 9 ulp, the baseline&#39;s 3\">",
        "<skipped message=\"INCONCLUSIVE: it cannot be told\">",
        "<skipped message=\"NOT COMPARABLE: the baseline has no such kernel\">",
        "<system-out>PASS (identical code)</system-out>");
}

Test(gate_report, junit_fails_what_cannot_be_told_where_that_is_asked_for) {
    add_every_verdict();
    g.plan.inconclusive_fails = true;
    char *text = print("junit");
    cr_expect_eq(times_in(text, "<failure "), 4);
    cr_expect_eq(times_in(text, "<skipped "), 1);
    HAS(text, "<failure type=\"INCONCLUSIVE\" message=\"it cannot be told\">");
    g.plan.not_comparable_fails = true;
    HAS(print("junit"), "<failure type=\"NOT COMPARABLE\"");
}

Test(gate_report, markdown_begins_with_the_verdict_and_folds_what_passed) {
    add_every_verdict();
    char *text = print("markdown");
    cr_assert(strncmp(text, "## normbench gate: WRONG\n", 25) == 0, "%s", text);
    const char *todo = strstr(text, "### What to do"), *table = strstr(text, "| verdict "),
               *fold = strstr(text, "<details>");
    cr_assert(todo && table && fold && todo < table && table < fold, "%s", text);
    HAS(text, "<summary>3 cases passed</summary>");
}

Test(gate_report, json_says_the_worst_verdict_and_what_it_rests_on) {
    add_every_verdict();
    cJSON *json = kept_json(cJSON_Parse(print("json")));
    cr_assert(json);
    cr_expect_str_eq(nb_json_get_text(json, "verdict"), "WRONG");
    const cJSON *cases = nb_json_get(json, "cases");
    cr_assert_eq(cJSON_GetArraySize(cases), 8);
    const cJSON *slow = cJSON_GetArrayItem(cases, 5), *same = cJSON_GetArrayItem(cases, 0);
    cr_expect_str_eq(nb_json_get_text(slow, "verdict"), "REGRESSION");
    cr_expect_eq(cJSON_GetArraySize(nb_json_get(slow, "screen")), N_LAUNCHES);
    cr_expect(!nb_json_get(same, "ratio"), "what was not timed has no ratio");
    const cJSON *first = cJSON_GetArrayItem(nb_json_get(slow, "screen"), 0);
    cr_expect(cJSON_IsNull(nb_json_get(first, "order_effect")));
}

static const char *const *const reports = nb_gate_formats;

Test(gate_report, an_empty_gate_prints_in_every_format) {
    for (int f = 0; reports[f]; f++) {
        char *text = print(reports[f]);
        cr_expect(*text, "%s", reports[f]);
        if (strcmp(reports[f], "json") == 0) HAS(text, "\"verdict\": null");
        if (strcmp(reports[f], "markdown") == 0) HAS(text, "nothing was compared");
        if (strcmp(reports[f], "bencher") == 0) cr_expect_str_eq(text, "{}\n");
    }
}

Test(gate_report, figures_that_are_not_there_are_null_or_empty) {
    struct nb_gate_case *c = add_case("one_v256_f32/shape:4x8", NB_VERDICT_INCONCLUSIVE, "no sample was timed");
    time_case(c, 1, 1);
    const struct nb_interval unknown = {NAN, NAN, NAN};
    c->judgement = (struct nb_gate_judgement){.ratio = unknown,
                                              .confirmed = unknown,
                                              .control = unknown,
                                              .ratio_min = INFINITY,
                                              .order_effect = NAN,
                                              .preempted = NAN,
                                              .launch_sd = NAN,
                                              .smallest_effect = NAN,
                                              .layout_spread = NAN};
    for (int b = 0; b < NB_N_BUILDS; b++) c->call_ns[b] = NAN;
    for (int f = 0; reports[f]; f++) {
        char *text = print(reports[f]);
        for (char *s = text; *s; s++)
            if (strncmp(s, "inf", 3) == 0 || strncmp(s, "nan", 3) == 0)
                cr_expect(isalpha((unsigned char)s[3]) || (s > text && isalpha((unsigned char)s[-1])), "%s: %.40s",
                          reports[f], s);
        if (strcmp(reports[f], "json") == 0) HAS(text, "\"ratio\": {\"value\": null, \"low\": null, \"high\": null}");
        if (strcmp(reports[f], "bencher") == 0) cr_expect_str_eq(text, "{}\n");
    }
}

Test(gate_report, two_launches_have_neither_an_interval_nor_an_effect_that_they_detect) {
    struct nb_gate_case *c = add_case("one_v256_f32/shape:4x8", NB_VERDICT_INCONCLUSIVE, "");
    time_case(c, 1.05, 1);
    c->launches.n_screen = 2;
    const struct nb_gate_evidence e = {.launches = c->launches.launches, .n_screen = 2, .n_confirming = 1};
    nb_gate_judge_exhausted(&e, &nb_gate_rule_default, &c->judgement);
    nb_gate_decide(c, c->judgement.verdict, "%s", c->judgement.reason);
    char *table = print("table"), *json = print("json");
    HAS(table, "INCONCLUSIVE one_v256_f32: too few launches for an interval (the time ran out after 2 launches)\n",
        "+5.00%");
    LACKS(table, "[", "etectable");
    HAS(json, "\"smallest_effect_median\": null");
}

Test(gate_report, a_case_that_broke_while_timed_has_no_figures) {
    struct nb_gate_case *c = add_case("one_v256_f32/shape:4x8", NB_VERDICT_WRONG, "candidate while timed: crashed");
    time_case(c, 1, 1);
    c->judgement = (struct nb_gate_judgement){0};
    char *table = print("table"), *json = print("json");
    LACKS(table, "-100");
    LACKS(json, "\"ratio\"");
    HAS(json, "\"timed\": 0");
}

Test(gate_report, names_and_reasons_stay_text) {
    static const char attack[] = "\033[31m</failure>]]><script>\"'&`|\n## x\xEF\xBF\xBE\xFF";
    struct nb_strbuf key released_by(nb_strbuf_release) = {0};
    nb_strbuf_addf(&key, "%s/shape:4x8", attack);
    add_case(key.text, NB_VERDICT_REGRESSION, attack);
    char *table = print("table"), *markdown = print("markdown"), *junit = print("junit");
    char *json = print("json");
    LACKS(table, "\033", "\n## x");
    LACKS(markdown, "\n## x", "<script>", "`|");
    LACKS(junit, "<script>", "\033", "\xEF\xBF\xBE");
    cr_expect_eq(times_in(junit, "</failure>"), 1);
    cJSON *parsed = kept_json(cJSON_Parse(json));
    cr_expect(parsed, "%s", json);
}

Test(gate_report, mean_and_leaning_are_those_of_the_timed_cases) {
    struct nb_gate_summary s;
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    for (int i = 0; i < 10; i++) {
        char key[40];
        snprintf(key, sizeof key, "k%d_v256_f32/shape:4x8", i);
        time_case(add_case(key, NB_VERDICT_PASS, ""), 1.004, i % 2 ? 1.0005 : 0.9995);
    }
    add_case("same_v256_f32/shape:4x8", NB_VERDICT_IDENTICAL, "");
    nb_gate_summary_init(&s, &g);
    cr_expect_eq(s.n_timed, 10);
    cr_expect(fabs(s.mean.value - 1.004) < 1e-4 && s.mean.low <= s.mean.value && s.mean.value <= s.mean.high);
    cr_expect(s.mean.low > 1.003 && s.mean.high < 1.005);
    cr_expect(s.smallest_effect > g.plan.rule.fail_margin && s.smallest_effect <= s.largest_smallest);
    cr_expect(s.n_slower == 10 && s.n_null == 10 && nb_gate_leans(s.n_slower, s.n_null));
    cr_expect(!nb_gate_leans(s.n_control_slower, s.n_control));
    gate_say_leaning(&s, &text);
    HAS(text.text, "10 of 10", "something small changed everywhere");
    nb_gate_summary_release(&s);
    for (size_t i = 0; i < 10; i++) g.cases[i].judgement.control.value = 1.001;
    nb_gate_summary_init(&s, &g);
    nb_strbuf_clear(&text);
    gate_say_leaning(&s, &text);
    HAS(text.text, "the measurement leans");
    nb_gate_summary_release(&s);
}

Test(gate_report, a_split_leans_only_where_chance_does_not_make_it) {
    cr_expect(!nb_gate_leans(0, 0));
    cr_expect(!nb_gate_leans(5, 5) && !nb_gate_leans(7, 7), "2 / 2^7 is above 1 %%");
    cr_expect(nb_gate_leans(8, 8) && nb_gate_leans(0, 8), "2 / 2^8 is below it");
    cr_expect(!nb_gate_leans(10, 20) && nb_gate_leans(19, 20));
}
