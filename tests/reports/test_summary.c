// SPDX-License-Identifier: Apache-2.0
/* The summary of a run: what it says of a small fixed one, and that it keeps to 24 lines of 80 cells whatever the run holds. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "reports/run/try_view.c"
#include "reports/text/escape.h"
#include "src/core/log.h"
#include "tests/support/files.h"
#include "tests/support/reports.h"

/* What a test sums up. */
static struct nb_results results;

static void release(void) { nb_results_release(&results); }
TestSuite(summary, .init = nb_test_plain_terminal, .fini = release);

static void expect_it_fits(const char *text) {
    size_t n = 0;
    for (const char *line = text, *end; *line; line = end + 1, n++) {
        struct nb_strbuf copy released_by(nb_strbuf_release) = {0};
        end = strchr(line, '\n');
        cr_assert_not_null(end, "the last line has no end: %s", text);
        nb_strbuf_addn(&copy, line, (size_t)(end - line));
        if (copy.len) cr_assert_leq(nb_utf8_cells(copy.text), 80, "%s", copy.text);
        for (size_t i = 0; i < copy.len; i++)
            cr_assert((unsigned char)copy.text[i] >= 32, "a control character in %s", text);
    }
    cr_assert_leq(n, 24, "%zu lines: %s", n, text);
}

static void expect_text(const char *wanted) {
    char *text = nb_test_render("summary", &results);
    expect_it_fits(text);
    cr_assert_not_null(strstr(text, wanted), "no '%s' in:\n%s", wanted, text);
}

static void expect_no_text(const char *unwanted) {
    char *text = nb_test_render("summary", &results);
    cr_assert_null(strstr(text, unwanted), "'%s' in:\n%s", unwanted, text);
}

/* Cases differ where the time's place, root and dtype do; one that is faster than its copy is no fastest. */
Test(summary, memory_roots_and_bf16_have_their_lines) {
    results = nb_test_small();
    char *reference = nb_strdup(results.records[0].key);
    struct nb_record *r = nb_test_add(&results, "rmsnorm_twopass_v256_f32", NB_OP_RMSNORM, "64x256");
    r->c.formula.root = NB_ROOT_RSQRT_NR;
    nb_test_times(r, 9000, (struct nb_interval){0.76, 0.75, 0.77}, reference);
    expect_text("rmsnorm_twopass, 64x256          of x * (1 / sqrt)\n  rsqrt and a Newton step saves  5.0% [");
    r = nb_test_add(&results, "rmsnorm_twopass_v256_bf16", NB_OP_RMSNORM, "64x256");
    r->c.dtype = NB_BF16;
    nb_test_times(r, 4935, (struct nb_interval){1, NAN, NAN}, r->key);
    expect_text("bf16 of f32, unpaired  50.0% [49.0, 51.0]\n");
    r = nb_test_add(&results, "rmsnorm_fast_v256_f32", NB_OP_RMSNORM, "64x256");
    nb_test_times(r, 100, (struct nb_interval){0.1, 0.1, 0.1}, reference);
    r->timing.suspect = true;
    expect_text("fastest RMSNorm        rmsnorm_twopass 256\n");
    for (int i = 0; i < 2; i++) {
        r = nb_test_add(&results, i ? "rmsnorm_twopass_v256_f32" : "layernorm_twopass_v256_f32",
                        i ? NB_OP_RMSNORM : NB_OP_LAYERNORM, "4096x1024");
        nb_test_times(r, 1e6 - 1e5 * i, (struct nb_interval){1 - 0.1 * i, 0.89, 0.91}, i ? reference : r->key);
        snprintf(r->timing.roofline.bottleneck, sizeof r->timing.roofline.bottleneck, "DRAM");
        if (!i) {
            free(reference);
            reference = nb_strdup(r->key);
        }
    }
    expect_text("in cache: 64x256, 128 KiB  in memory: 4096x1024, 32 MiB\n");
    expect_text("RMSNorm saves          20.0% [19.0, 21.0]         10.0% [9.0, 11.0]\n");
    free(reference);
}

/* A plugin's kernels are named first, with their failures; so are groups that time did not suffice for. */
Test(summary, the_user_s_own_kernels_and_dropped_groups_are_named) {
    results = nb_test_small();
    char *reference freed = nb_strdup(results.records[0].key);
    struct nb_record *r = nb_test_add(&results, "mine:rms_f32", NB_OP_RMSNORM, "64x256");
    nb_test_times(r, 19740, (struct nb_interval){1.6, 1.58, 1.62}, reference);
    r->timing.noisy = true;
    nb_test_add(&results, "mine:rms_f32", NB_OP_RMSNORM, "64x512")->status = NB_INACCURATE;
    expect_text(
        "~mine:rms_f32: 1 of 2 cases FAILED; 64x256: 19.7 us [19.5, 19.9], 80% of copy;\n  2.000 [1.951, 2.051] times "
        "rmsnorm_twopass 256\n");
    r = nb_test_add(&results, "layernorm_fast_v256_f32", NB_OP_LAYERNORM, "64x4096");
    r->group = 7;
    r->timing_reason = nb_strdup(NB_OVER_BUDGET);
    expect_text("Not measured, out of time: f32 forward 64x4096\n");
}

Test(summary, it_keeps_its_size_whatever_the_run_holds) {
    expect_text("Nothing was timed.\n");
    nb_test_sweep(&results);
    expect_text("fastest LayerNorm");
    char longest[3000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    results.dir = nb_strdup(longest);
    expect_text("fastest LayerNorm");
    free(results.dir);
    results.dir = nb_strdup("evil\033[31m\n");
    for (size_t i = 0; i < results.n; i++) {
        memcpy(results.records[i].c.variant, "\033[31m\n\xff'", 8);
        results.records[i].timing.noisy = true;
        results.records[i].timing.roofline.share.value = NAN;
        results.records[i].timing.vs_copy.value = NAN;
        results.records[i].timing.time_ns.low = NAN;
    }
    expect_text("Too noisy to rank");
}

Test(summary, a_neighbour_on_the_core_is_named_with_what_to_do) {
    for (int i = 0; i < 2; i++) {
        struct nb_record *r =
            nb_test_add(&results, i ? "dyt_fused_v256_f32" : "dyt_plain_v256_f32", NB_OP_DYT, "64x256");
        nb_test_times(r, 1000, (struct nb_interval){1, NAN, NAN}, r->key);
        r->timing.noisy = true;
        r->timing.uncontended = i ? 0.1 : NAN;
        r->timing.n_samples = i ? 100 : 300;
        strcpy(r->timing.state, i ? "uncontended" : "any");
    }
    expect_text(
        "Too noisy to rank (~): 2 of 2 cases. The core was shared during 90% of the\n  samples; figures of 1 of 2 cases "
        "are from undisturbed ones. Rerun when the\n  core is idle.\n");
    expect_text("~dyt");
    strcpy(results.records[1].timing.state, "contended");
    strcpy(results.records[0].timing.state, "contended");
    results.records[0].timing.uncontended = 0.5;
    expect_text("; no case has enough undisturbed ones.");
    strcpy(results.records[1].timing.state, "uncontended");
    results.records[0].timing.uncontended = NAN;
    char *table = nb_test_render("table", &results);
    cr_expect_not_null(strstr(table, "shared during 90% of the samples; figures of 1 of 2 cases are"), "%s", table);
    results.records[1].timing.uncontended = 1;
    expect_no_text("shared during");
}

/* A line that goes on must be one word for the shell: no blank is added, and quotes are closed and opened again. */
Test(summary, long_commands_go_on_behind_a_backslash) {
    results = nb_test_small();
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    free(results.dir);
    results.dir =
        nb_strdup("/a/folder with blanks/whose name is so long that no line of eighty cells could ever hold it/run");
    struct nb_next next = {.results = &results, .width = 80};
    nb_next_commands(&next, &text);
    cr_assert_not_null(strstr(text.text, "'\\\n'"), "%s", text.text);
    char *joined = text.text;
    for (char *s; (s = strstr(joined, "'\\\n'")) != NULL;) memmove(s, s + 4, strlen(s + 4) + 1);
    for (char *s; (s = strstr(joined, "\\\n")) != NULL;) memmove(s, s + 2, strlen(s + 2) + 1);
    cr_assert_not_null(strstr(joined, results.dir), "%s", joined);
}

Test(summary, what_a_language_adds_to_a_call_is_said_of_programs_alone) {
    static const char *const titles[] = {"", "", ""};
    struct nb_grid grid released_by(nb_grid_release);
    struct nb_record plugin = {.timing.floor_ns = NAN}, slow = {.timing.floor_ns = 3500};
    struct nb_record program = {.facts.library = "Python 3.11, NumPy", .timing.floor_ns = 900};
    nb_grid_init(&grid, titles, 3);
    add_language((const struct nb_record *[2]){&plugin, NULL}, &grid);
    cr_expect_eq(grid.n_cells, 0);
    add_language((const struct nb_record *[2]){&program, &slow}, &grid);
    cr_assert_eq(grid.n_cells, 3);
    cr_expect_str_eq(grid.cells[1], "Python adds 900.0 ns to a call");
    cr_expect_str_eq(grid.cells[2], "its program adds 3.500 us");
}

/* ---- what is said of a failure ---- */

Test(summary, what_failing_cases_share_is_said_where_it_is_no_chance) {
    const struct {
        const char *failing[4], *said;
    } rows[] = {
        {{"4x33", "4x65", "4x100", "4x999"},
         "only with columns that are no multiple of 32: 4 of 4 such cases, none of 24 others"},
        {{"4x33", "4x64", "4x96", "4x128"}, ""}, /* of many lengths, beside right ones of the same */
        {{"300x64", "512x64", "1024x32", "999x96"},
         "only with 300 rows and more: 4 of 4 such cases, none of 24 others"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nb_strbuf said released_by(nb_strbuf_release) = {0};
        results = (struct nb_results){0};
        for (int k = 0; k < 4; k++) {
            struct nb_record *r = nb_test_add(&results, "mine:k", NB_OP_RMSNORM, rows[i].failing[k]);
            r->status = NB_INACCURATE;
        }
        for (int k = 0; k < 24; k++) {
            char shape[24];
            snprintf(shape, sizeof shape, "%dx%d", 4 + k % 3, 32 * (1 + k % 8));
            nb_test_add(&results, "mine:k", NB_OP_RMSNORM, shape)->status = NB_OK;
        }
        /* Each its own key, as in a run. */
        for (size_t k = 0; k < results.n; k++) {
            free(results.records[k].key);
            results.records[k].key = nb_textf("mine:k/%zu", k);
        }
        nb_failure_pattern(&results, NULL, "mine:k", &said);
        cr_expect_str_eq(said.text ? said.text : "", rows[i].said, "row %zu", i);
        nb_results_release(&results);
    }
}

static struct nb_record *add_failure(const char *shape, double low, double high, double rest) {
    struct nb_record *r = nb_test_add(&results, "mine:k", NB_OP_RMSNORM, shape);
    r->status = NB_INACCURATE;
    r->has_evidence = true;
    r->evidence = (struct nb_evidence){.covered = true, .factor_low = low, .factor_high = high, .factor_rest = rest};
    free(r->key);
    r->key = nb_textf("mine:k/shape:%s/data:normal", shape);
    return r;
}

Test(summary, a_factor_of_every_row_is_said_with_what_makes_it) {
    const double of_384 = sqrt(377. / 384), of_1024 = sqrt(1017. / 1024), u = 0x1p-24;
    const struct {
        double low[2], high[2], rest;
        const char *said;
    } rows[] = {
        {{of_384, of_1024},
         {of_384, of_1024},
         u,
         "every row is too small by a factor of 1.0034 to 1.0092, as if the sum were divided by n - 7"},
        {{1.01, 1.01}, {1.01, 1.01}, u, "every row is too large by a factor of 1.01"},
        {{1.02, 1.1},
         {1.03, 1.3},
         u,
         "every row is too large by a factor of 1.02 to 1.3, more in longer rows, as where a sum loses terms"},
        {{0.97, 0.98}, {1.02, 1.03}, u, "every row is off by a factor of 0.97 to 1.03"},
        {{0, 0}, {0, 0}, u, "every row comes out as 0, as where a sum of squares overflows"},
        {{0.99, 0.5}, {0.99, 0.5}, 0.01, ""}, /* more is wrong */
        {{1 + u, 1 + u}, {1 + u, 1 + u}, u, ""},
        {{NAN, NAN}, {NAN, NAN}, NAN, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nb_strbuf said released_by(nb_strbuf_release) = {0};
        results = (struct nb_results){0};
        add_failure("64x384", rows[i].low[0], rows[i].high[0], rows[i].rest);
        add_failure("1024x1024", rows[i].low[1], rows[i].high[1], rows[i].rest);
        nb_failure_factor(&results, NULL, "mine:k", &said);
        cr_expect_str_eq(said.text ? said.text : "", rows[i].said, "row %zu", i);
        nb_results_release(&results);
    }
}

Test(summary, a_failure_in_the_range_stands_before_one_outside) {
    results = (struct nb_results){0};
    add_failure("4x4", NAN, NAN, NAN);
    add_failure("4x8", NAN, NAN, NAN);
    struct nb_record *inside = &results.records[0], *outside = &results.records[1];
    outside->evidence.covered = false;
    outside->has_accuracy = true;
    outside->accuracy = (struct nb_accuracy){.n_beyond = 1, .reproducer = {.row = 1, .col = 1}};
    cr_expect(is_plainer(inside, outside));
    cr_expect_not(is_plainer(outside, inside));
    outside->evidence.covered = true;
    cr_expect(is_plainer(outside, inside), "an element beyond its bound");
}

Test(summary, a_case_alone_is_said_in_words) {
    struct nb_strbuf said released_by(nb_strbuf_release) = {0};
    results = (struct nb_results){0};
    struct nb_record *r = add_failure("4x64", 1.01, 1.01, 0x1p-24);
    nb_test_accuracy(r, 12.5, 0);
    r->evidence.covered = false;
    r->reason = nb_strdup("256 of 256 elements beyond the bound");
    nb_case_view(&results, &said);
    HAS(said.text, "mine:k: WRONG (inaccurate)\n  case             shape:4x64/data:normal\n", "256 of 256 elements",
        "outside the range of our kernels", "too large by a factor of 1.01", "12.5 ulp", "not timed");
}

Test(summary, a_witness_stands_with_its_own_sentence) {
    results = nb_test_small();
    struct nb_record *r = &results.records[0];
    struct nb_strbuf said released_by(nb_strbuf_release) = {0};
    free(r->reason);
    r->reason = nb_strdup("the relation shift is broken");
    r->status = NB_INACCURATE;
    nb_test_accuracy(r, 0.69, 0);
    r->accuracy.reproducer.row = r->accuracy.reproducer.col = 3;
    nb_failure_reproducer(r, &said);
    cr_expect_str_eq(said.text, "the relation shift is broken");
    r->accuracy.n_beyond = 1;
    nb_strbuf_clear(&said);
    nb_failure_reproducer(r, &said);
    cr_expect_not_null(strstr(said.text, "; row 3, column 3, x "), "%s", said.text);
    r->status = NB_CRASHED; /* the check before it had its own */
    nb_strbuf_clear(&said);
    nb_failure_reproducer(r, &said);
    cr_expect_str_eq(said.text, "the relation shift is broken");
}
