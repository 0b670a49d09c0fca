// SPDX-License-Identifier: Apache-2.0
/* What each renderer prints of a small fixed run, and that no name gets out of its quotes. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/text/escape.h"
#include "src/core/format.h"
#include "src/core/log.h"
#include "tests/support/files.h"
#include "tests/support/reports.h"

/* What a test renders. */
static struct nb_results results;

static void release(void) { nb_results_release(&results); }
TestSuite(reports, .init = nb_test_plain_terminal, .fini = release);

/* ---- renderers ---- */

Test(reports, table_is_aligned_and_names_what_failed) {
    results = nb_test_small();
    char *text = nb_test_render("table", &results);
    cr_assert_str_eq(
        text,
        "Some CPU, 2026-01-31\n"
        "All cases: pass forward, dtype f32, shape 64x256, data normal, seed 1, eps 1e-5, eps_place inside, root "
        "mul_recip, affine by kernel, weight_offset 0, stride packed, threads 1, cache hot\n"
        "\n"
        "kernel             width  status                      time   GB/s  % of copy  % of roofline          vs reference  max ulp  "
        "of "
        "bound  bias/u  note\n"
        "layernorm_twopass  256    ok          12.3 us [12.2, 12.5]  10.62      80.0%       80.0% L2             reference     1.25  "
        "    0.16  "
        "+0.062\n"
        "rmsnorm_twopass    256    ok          9.87 us [9.77, 9.97]  13.28      80.0%       80.0% L2  0.800 [0.790, 0.810]     0.75  "
        "    0.09  "
        "-0.125\n"
        "rmsnorm_bad        256    inaccurate                                                                                 99.00  "
        "   12.38  "
        "+0.000  beyond the bound\n"
        "\n"
        "1 failed\n"
        "inaccurate: "
        "rmsnorm_bad_v256_f32/shape:64x256/data:normal/seed:1/eps:1e-5/eps_place:inside/root:mul_recip/affine:gamma/"
        "weight_offset:0/stride:packed/threads:1/cache:hot\n"
        "  beyond the bound; row 3, column 7, x -2, got 1.5, exact 1.25, error 99 ulp (allowed 8)\n"
        "  normbench replay DIR 'rmsnorm_bad_v256_f32/shape:64x256/data:normal/seed:1/eps:1e-5/eps_place:inside/"
        "root:mul_recip/affine:gamma/weight_offset:0/stride:packed/threads:1/cache:hot'\n"
        "\n"
        "8 cells left out\n"
        "      7  no such kernel\n"
        "      1  no AVX-512\n"
        "\n"
        "4 cases: 2 ok, 1 inaccurate, 1 skipped\n"
        "Results: results/one (results.json, index.html, plots/)\n");
}

/* What makes a case goes into one column, and no line is longer than the screen. */
Test(reports, table_of_80_columns_keeps_case_time_ratio_and_error) {
    setenv("COLUMNS", "80", 1);
    results = nb_test_small();
    char *reference freed = nb_strdup(results.records[0].key);
    for (uint32_t root = NB_ROOT_DIV_SQRT; root <= NB_ROOT_RSQRT_RAW; root++) {
        struct nb_record *r = nb_test_add(&results, "rmsnorm_twopass_v256_f32", NB_OP_RMSNORM, "64x256");
        snprintf(r->c.eps_text, sizeof r->c.eps_text, "1e-12");
        r->c.formula.root = root;
        nb_test_times(r, 5000 + root, (struct nb_interval){0.4, 0.38, 0.42}, reference);
        nb_test_accuracy(r, 3680, 0);
    }
    struct nb_record *r = nb_test_add(&results, "rmsnorm_of_quite_a_long_name_v256_f32", NB_OP_RMSNORM, "64x256");
    snprintf(r->c.eps_text, sizeof r->c.eps_text, "1e-12");
    r->c.formula.root = NB_ROOT_RSQRT_RAW;
    char *text = nb_test_render("table", &results), *end = strstr(text, "\n1 failed");
    cr_assert_not_null(end);
    for (char *line = text; line < end; line = strchr(line, '\n') + 1)
        cr_assert_leq(strcspn(line, "\n"), 80, "%s", text);
    HAS(text, "\ncase ", "rmsnorm_twopass 256 rsqrt_raw", "5.003 us  ", "0.400 [0.380, 0.420]", "3680",
        "layernorm_twopass 256 eps 1e-5", "rmsnorm_bad 256 eps 1e-5 inaccurate");
    cr_assert_not_null(strstr(text, "rsqrt_raw\n"), "a long case goes on in the next line: %s", text);
}

/* Merged results of unlike machines say of every group whose it is, and what the machines are. */
Test(reports, groups_of_several_machines_name_theirs) {
    static const struct {
        const char *format, *first, *second;
    } rows[] = {{"table", "\n-- machine 0  64x256\n", "\n-- machine 1  64x4096\n"},
                {"markdown", "\n### machine 0  64x256\n", "\n### machine 1  64x4096\n"}};
    nb_test_sweep(&results);
    nb_test_part(&results, "64x256");
    results.records[0].facts.implementation = nb_strdup("stream");
    results.records[2].facts.implementation = nb_strdup("stream");
    for (int i = 0; i < 2; i++) {
        char *text = nb_test_render(rows[i].format, &results);
        HAS(text, rows[i].first, rows[i].second, "machine 0: First CPU\n",
            "machine 1: Other CPU; unlike machine 0 in cpu.model\n", "Chosen on machine 0: stream",
            "Chosen on machine 1: stream");
    }
}

Test(reports, table_has_a_column_only_where_a_value_differs) {
    for (int i = 0; i < 4; i++) {
        struct nb_record *r =
            nb_test_add(&results, "rmsnorm_twopass_v256_f32", NB_OP_RMSNORM, i < 2 ? "64x256" : "64x512");
        snprintf(r->c.eps_text, sizeof r->c.eps_text, "%s", i == 0 ? "1e-5" : "1e-6");
    }
    char *text = nb_test_render("table", &results);
    HAS(text, "-- 64x256\nkernel           width  eps   status", "-- 64x512  eps 1e-6\nkernel           width  status");
}

Test(reports, table_prints_no_control_sequences_of_names) {
    nb_test_add(&results, "evil\033[31m\n_v256_f32", NB_OP_RMSNORM, "64x256");
    char *text = nb_test_render("table", &results);
    cr_assert_null(strchr(text, '\033'));
    cr_assert_not_null(strstr(text, "evil\\x1B[31m\\x0A"));
}

/* RFC 4180; a figure that was not measured, or a counter that no case has, is no text. */
Test(reports, csv_quotes_texts_and_leaves_out_what_was_not_measured) {
    results = nb_test_small();
    free(results.records[2].reason);
    results.records[2].reason = nb_strdup("says \"no\", then\r\nstops");
    results.records[1].timing.vs_copy.low = NAN;
    results.records[0].n_counters = 2;
    results.records[0].counters = nb_alloc(2, sizeof *results.records[0].counters);
    results.records[0].counters[0] = (struct nb_counter){.name = "instructions", .value = 4096};
    results.records[0].counters[1] = (struct nb_counter){.name = "cycles", .value = NAN, .reason = "no PMU"};
    const char *text = nb_test_render("csv", &results);
    HAS(text, ",time_ns,", ",vs_copy_low_ratio,", ",instructions", "12345.678,", ",4096",
        "\"says \"\"no\"\", then\r\nstops\"", ",skipped,");
    cr_expect(!strstr(text, ",nan,") && !strstr(text, ",-nan,") && !strstr(text, "cycles"), "%s", text);
}

static void expect_escaped(void (*escape)(struct nb_strbuf *, const char *), const char *text, const char *want) {
    struct nb_strbuf out released_by(nb_strbuf_release) = nb_strbuf_empty();
    escape(&out, text);
    cr_assert_str_eq(out.text, want);
}

Test(reports, csv_has_no_formulas_and_keeps_numbers) {
    static const char *const cells[][2] = {
        {"=1+1", "\"'=1+1\""},
        {"-rm", "\"'-rm\""},
        {"\rx", "\"'\rx\""},
        {"-1.5", "-1.5"},
        {"-1.5%", "\"'-1.5%\""},
        {"", ""},
        {"=\"a\"", "\"'=\"\"a\"\"\""},
        {"\033[31m", "\\x1B[31m"},
        {"\xff", "\\xFF"},
        {"a\nb", "\"a\nb\""},
    };
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) expect_escaped(nb_escape_csv, cells[i][0], cells[i][1]);
}

Test(reports, markdown_has_tables_and_escapes_cells) {
    results = nb_test_small();
    free(results.records[2].reason);
    results.records[2].reason = nb_strdup("a|b <i>*c*\n`d`");
    char *text = nb_test_render("markdown", &results);
    HAS(text, "# normbench quick\n\n4 cases: 2 ok, 1 inaccurate, 1 skipped.\n",
        "\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n"
        "| layernorm_twopass | 256 | ok | 12.3 us \\[12.2, 12.5\\] | 10.62 | 80.0% | 80.0% L2 | "
        "reference | 1.25 | 0.16 | +0.062 | |\n",
        "| a\\|b &lt;i&gt;\\*c\\* \\`d\\` |\n", "| 7 | no such kernel |\n");
}

/* ---- escapes and figures as text ---- */

Test(reports, escapes_leave_no_way_out) {
    expect_escaped(nb_escape_html, "<script>\"a\" & 'b'\x01",
                   "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;\xEF\xBF\xBD");
    expect_escaped(nb_escape_html, "\xC0\xBC", "\xEF\xBF\xBD\xEF\xBF\xBD"); /* an overlong '<' is no '<' */
    expect_escaped(nb_escape_gnuplot, "it's `ls` \"x\" \\\n@y", "'it\xE2\x80\x99s `ls` \"x\" \\ @y'");
    expect_escaped(nb_escape_gnuplot, "''", "'\xE2\x80\x99\xE2\x80\x99'");
    expect_escaped(nb_escape_file_name, "../a b/c:d_e-1.x", "_._a_b_c_d_e-1.x");
    expect_escaped(nb_escape_file_name, "-rf", "_rf");
    expect_escaped(nb_escape_file_name, "", "_");
}

Test(reports, widths_are_counted_in_cells) {
    cr_assert_eq(nb_utf8_cells("abc"), 3);
    cr_assert_eq(nb_utf8_cells("\xC2\xB1"), 1);
    cr_assert_eq(nb_utf8_cells("e\xCC\x81"), 1);
    cr_assert_eq(nb_utf8_cells("\xE6\xBC\xA2"), 2);
    cr_assert_eq(nb_utf8_cells("\xFF\xFE"), 2);
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(&text, "a\xE6\xBC\xA2z1");
    nb_utf8_cut(&text, 4, "~");
    cr_assert_str_eq(text.text, "a\xE6\xBC\xA2~");
}

Test(reports, intervals_have_one_notation) {
    static const struct {
        void (*add)(struct nb_strbuf *out, struct nb_interval v);
        struct nb_interval v;
    } rows[] = {{nb_format_saved, {0.727, 0.714, 0.743}},  {nb_format_saved, {1.271, 1.12, 1.5149}},
                {nb_format_share, {0.5, NAN, NAN}},        {nb_format_share, {0.25, 0.25, 0.25}},
                {nb_format_saved, {1.0001, 0.998, 1.002}}, {nb_format_time_interval, {1263912, 1204000, 1349000}}};
    struct nb_strbuf out released_by(nb_strbuf_release) = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        nb_strbuf_add(&out, i ? "; " : "");
        rows[i].add(&out, rows[i].v);
    }
    cr_expect_str_eq(out.text, "27.3% [25.7, 28.6]; -27.1% [-51.5, -12.0]; 50.0%; 25.0%; "
                               "0.0% [-0.2, 0.2]; 1.26 ms [1.20, 1.35]");
}

Test(reports, a_share_is_0_or_100_percent_only_when_it_is) {
    const struct {
        double share;
        const char *text;
    } shares[] = {{0, "0.0%"},        {1, "100.0%"},        {0.841, "84.1%"},   {0.0005, "0.1%"},
                  {0.0004, "0.04%"},  {1e-9, "0.0000001%"}, {0.9995, "99.95%"}, {0.99999, "99.999%"},
                  {1.0004, "100.0%"}, {-1e-5, "-0.001%"}};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        struct nb_strbuf out released_by(nb_strbuf_release) = {0};
        nb_format_percent(&out, shares[i].share);
        cr_expect_str_eq(out.text, shares[i].text);
    }
}
