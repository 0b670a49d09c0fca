// SPDX-License-Identifier: Apache-2.0
/* What each renderer prints of a small fixed run, and that no name gets out of its quotes. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "reports/text/escape.h"
#include "reports/text/format.h"
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
        "All cases: pass forward, dtype f32, shape 64x256, data normal, seed 1, eps 1e-5, eps_place inside, root\n"
        "  mul_recip, affine by kernel, weight_offset 0, stride packed, threads 1, cache hot\n"
        "\n"
        "kernel             width  status                 time   GB/s   roof  attained          vs reference  max ulp  "
        "of "
        "bound  bias/u  note\n"
        "layernorm_twopass  256    ok          12.35 us +-1.0%  10.62  80.0%  80.0% L2             reference     1.25  "
        "    0.16  "
        "+0.062\n"
        "rmsnorm_twopass    256    ok          9.870 us +-1.0%  13.28  80.0%  80.0% L2  0.800 [0.790, 0.810]     0.75  "
        "    0.09  "
        "-0.125\n"
        "rmsnorm_bad        256    inaccurate                                                                   99.00  "
        "   12.38  "
        "+0.000  beyond the bound\n"
        "\n"
        "1 failed\n"
        "inaccurate:\n"
        "  rmsnorm_bad_v256_f32/shape:64x256/data:normal/seed:1/eps:1e-5/eps_place:inside/root:mul_recip/affine:gamma/"
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

Test(reports, table_fits_the_screen_and_says_what_it_left_out) {
    setenv("COLUMNS", "60", 1);
    results = nb_test_small();
    char *text = nb_test_render("table", &results), *end = strstr(text, "\n1 failed");
    cr_assert_not_null(end);
    for (char *line = text; line < end; line = strchr(line, '\n') + 1) cr_assert_leq(strcspn(line, "\n"), 60);
    cr_assert_not_null(strstr(text, "Too narrow for: "));
    cr_assert_not_null(strstr(text, "bias/u"));
}

/* What makes a case goes into one column, and no line is longer than the screen. */
Test(reports, table_of_80_columns_keeps_case_time_ratio_and_error) {
    setenv("COLUMNS", "80", 1);
    results = nb_test_small();
    char *reference = nb_strdup(results.records[0].key);
    for (uint32_t root = NB_ROOT_DIV_SQRT; root <= NB_ROOT_RSQRT_RAW; root++) {
        struct nb_record *r = nb_test_add(&results, "rmsnorm_twopass_v256_f32", NB_OP_RMSNORM, "64x256");
        snprintf(r->c.eps_text, sizeof r->c.eps_text, "1e-12");
        r->c.formula.root = root;
        nb_test_times(r, 5000 + root, (struct nb_interval){0.4, 0.38, 0.42}, reference);
        nb_test_accuracy(r, 3680, 0);
    }
    char *text = nb_test_render("table", &results), *end = strstr(text, "\n1 failed");
    cr_assert_not_null(end);
    for (char *line = text; line < end; line = strchr(line, '\n') + 1)
        cr_assert_leq(strcspn(line, "\n"), 80, "%s", text);
    cr_assert_not_null(strstr(text, "\ncase "), "%s", text);
    cr_assert_not_null(strstr(text, "rmsnorm_twopass 256 rsqrt_raw"), "%s", text);
    cr_assert_not_null(strstr(text, "5.003 us +-1.0%"), "%s", text);
    cr_assert_not_null(strstr(text, "0.400 +-5.0%"), "%s", text);
    cr_assert_not_null(strstr(text, "3680"), "%s", text);
    cr_assert_not_null(strstr(text, "layernorm_twopass 256 eps 1e-5"), "%s", text);
    cr_assert_not_null(strstr(text, "rmsnorm_bad 256 eps 1e-5 inaccurate"), "%s", text);
    free(reference);
}

Test(reports, an_error_of_some_rows_says_how_many_are_lost) {
    results = nb_test_small();
    struct nb_record *all = nb_test_add(&results, "rmsnorm_all", NB_OP_RMSNORM, "64x256");
    results.records[0].accuracy.n_rows_lost = 3;
    nb_test_accuracy(all, NAN, 0);
    all->accuracy.n_rows_lost = 64;
    char *text = nb_test_render("table", &results);
    cr_expect_not_null(strstr(text, ", 3 lost"), "%s", text);
    cr_expect_not_null(strstr(text, "  64 lost"), "%s", text);
}

Test(reports, table_groups_cases_under_what_they_share) {
    nb_test_sweep(&results);
    char *text = nb_test_render("table", &results);
    cr_assert_not_null(strstr(text, "\n-- 64x256\nkernel"));
    cr_assert_not_null(strstr(text, "\n-- 64x1024\nlayernorm_twopass"));
    cr_assert_null(strstr(text, "shape 64x"), "a shape is a heading, no constant");
}

/* Merged results of unlike machines say of every group whose it is, and what the machines are. */
Test(reports, groups_of_several_machines_name_theirs) {
    static const char *const formats[] = {"table", "markdown"}, *const marks[] = {"-- ", "### "};
    nb_test_sweep(&results);
    nb_test_part(&results, "64x256");
    results.records[0].implementation = nb_strdup("stream");
    results.records[2].implementation = nb_strdup("stream");
    for (int i = 0; i < 2; i++) {
        char *text = nb_test_render(formats[i], &results);
        struct nb_strbuf first = {0}, second = {0};
        nb_strbuf_addf(&first, "\n%smachine 0  64x256\n", marks[i]);
        nb_strbuf_addf(&second, "\n%smachine 1  64x4096\n", marks[i]);
        cr_expect_not_null(strstr(text, first.text), "%s", text);
        cr_expect_not_null(strstr(text, second.text), "%s", text);
        cr_expect_not_null(strstr(text, "machine 0: First CPU\n"), "%s", text);
        cr_expect_not_null(strstr(text, "machine 1: Other CPU; unlike machine 0 in cpu.model\n"), "%s", text);
        cr_expect_not_null(strstr(text, "Chosen on machine 0: stream"), "%s", text);
        cr_expect_not_null(strstr(text, "Chosen on machine 1: stream"), "%s", text);
        nb_strbuf_release(&first);
        nb_strbuf_release(&second);
    }
}

Test(reports, exports_name_the_machine_of_each_case) {
    static const char *const wanted[][4] = {
        {"google_benchmark_medians", "\"cpu_model\": \"several machines\"", "\"machine\": 0", "\"machine\": 1"},
        {"benchmark_action", "\"extra\": \"machine 0\"", "\"extra\": \"machine 1; noisy\"", "\"extra\": \"machine 1\""},
        {"junit", "<property name=\"machine 0\" value=\"First CPU\"", "machine 0; ok; time 1.000 us",
         "machine 1; ok; time 2.800 us"},
    };
    nb_test_sweep(&results);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        cr_expect_null(strstr(nb_test_render(wanted[i][0], &results), "machine 0"), "%s: one machine", wanted[i][0]);
    nb_test_part(&results, "64x256");
    cJSON_AddItemToObject(results.meta, "fingerprint",
                          cJSON_Parse("{\"cpu\":{\"model\":\"First CPU\",\"l1d_bytes\":32768}}"));
    snprintf(results.records[2].timing.noise, sizeof results.records[2].timing.noise, "noisy");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        char *text = nb_test_render(wanted[i][0], &results);
        for (int w = 1; w < 4; w++)
            cr_expect_not_null(strstr(text, wanted[i][w]), "%s: no %s in %s", wanted[i][0], wanted[i][w], text);
        cr_expect_null(strstr(text, "32768"), "%s: a cache of one machine as if it were of all", wanted[i][0]);
    }
}

Test(reports, rows_without_groups_are_parted_by_machine) {
    static const char *const shapes[] = {"64x256", "64x512", "64x1024"};
    for (int i = 0; i < 3; i++) {
        struct nb_record *r = nb_test_add(&results, "rmsnorm_twopass_v256_f32", NB_OP_RMSNORM, shapes[i]);
        nb_test_times(r, 1000 + i, (struct nb_interval){1, 1, 1}, "reference");
    }
    nb_test_part(&results, "64x256");
    char *text = nb_test_render("table", &results);
    cr_expect_not_null(strstr(text, "\n-- machine 0  64x256\n"), "%s", text);
    cr_expect_not_null(strstr(text, "\n-- machine 1\nkernel "), "%s", text);
}

Test(reports, table_has_a_column_only_where_a_value_differs) {
    for (int i = 0; i < 4; i++) {
        struct nb_record *r =
            nb_test_add(&results, "rmsnorm_twopass_v256_f32", NB_OP_RMSNORM, i < 2 ? "64x256" : "64x512");
        snprintf(r->c.eps_text, sizeof r->c.eps_text, "%s", i == 0 ? "1e-5" : "1e-6");
    }
    char *text = nb_test_render("table", &results);
    cr_assert_not_null(strstr(text, "-- 64x256\nkernel           width  eps   status"), "%s", text);
    cr_assert_not_null(strstr(text, "-- 64x512  eps 1e-6\nkernel           width  status"), "%s", text);
}

Test(reports, table_prints_no_control_sequences_of_names) {
    nb_test_add(&results, "evil\033[31m\n_v256_f32", NB_OP_RMSNORM, "64x256");
    char *text = nb_test_render("table", &results);
    cr_assert_null(strchr(text, '\033'));
    cr_assert_not_null(strstr(text, "evil\\x1B[31m\\x0A"));
}

/* Splits RFC 4180 text into fields; a record ends with "\r\n" outside quotes. */
static size_t read_csv(const char *text, size_t n_columns, char fields[][1024], size_t max) {
    size_t n = 0, len = 0, column = 0;
    bool quoted = false;
    for (const char *s = text; *s && n < max; s++) {
        if (*s == '"' && quoted && s[1] == '"')
            fields[n][len++] = *s++;
        else if (*s == '"')
            quoted = !quoted;
        else if (!quoted && (*s == ',' || *s == '\r')) {
            fields[n++][len] = '\0';
            len = 0;
            column = *s == ',' ? column + 1 : 0;
            if (*s == '\r') cr_assert_eq(*++s, '\n');
            if (column == 0 && n_columns) cr_assert_eq(n % n_columns, 0, "every record has %zu fields", n_columns);
        } else
            fields[n][len++] = *s;
    }
    return n;
}

static const char *csv_field(char fields[][1024], size_t n_columns, size_t row, const char *name) {
    for (size_t c = 0; c < n_columns; c++)
        if (strcmp(fields[c], name) == 0) return fields[row * n_columns + c];
    cr_assert_fail("no column %s", name);
    return NULL;
}

Test(reports, csv_reads_back_exactly) {
    static char fields[2000][1024];
    results = nb_test_small();
    free(results.records[2].reason);
    results.records[2].reason = nb_strdup("says \"no\", then\r\nstops");
    results.records[1].timing.roof.low = NAN;
    char *text = nb_test_render("csv", &results);
    size_t n_columns = 1;
    for (const char *s = text; *s != '\r'; s++) n_columns += *s == ',';
    size_t n = read_csv(text, n_columns, fields, 2000);
    cr_assert_eq(n, 5 * n_columns);
    cr_assert_str_eq(csv_field(fields, n_columns, 1, "shape"), "64x256");
    cr_assert_str_eq(csv_field(fields, n_columns, 1, "kernel"), "layernorm_twopass");
    cr_assert_eq(strtod(csv_field(fields, n_columns, 1, "time_ns"), NULL), 12345.678);
    cr_assert_eq(strtod(csv_field(fields, n_columns, 2, "roof_high_ratio"), NULL), 0.81);
    cr_assert_str_eq(csv_field(fields, n_columns, 2, "roof_low_ratio"), "");
    cr_assert_str_eq(csv_field(fields, n_columns, 3, "reason"), "says \"no\", then\r\nstops");
    cr_assert_str_eq(csv_field(fields, n_columns, 3, "time_ns"), "");
    cr_assert_str_eq(csv_field(fields, n_columns, 3, "witness_col"), "7");
    cr_assert_str_eq(csv_field(fields, n_columns, 4, "status"), "skipped");
    cr_assert_null(strstr(text, ",nan,"));
    cr_assert_null(strstr(text, ",-nan,"));
}

Test(reports, csv_has_no_formulas_and_keeps_numbers) {
    static const char *const cells[][2] = {
        {"=1+1", "\"'=1+1\""},
        {"+x", "\"'+x\""},
        {"-rm", "\"'-rm\""},
        {"@SUM(A1)", "\"'@SUM(A1)\""},
        {"\tx", "\"'\tx\""},
        {"\rx", "\"'\rx\""},
        {"-1.5", "-1.5"},
        {"+3e-7", "+3e-7"},
        {"-1.5%", "\"'-1.5%\""},
        {"a=b", "a=b"},
        {"", ""},
        {"=\"a\"", "\"'=\"\"a\"\"\""},
        {"\033[31m", "\\x1B[31m"},
        {"\xc2\x9b", "\\xC2\\x9B"},
        {"\xff", "\\xFF"},
        {"a\nb", "\"a\nb\""},
    };
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        struct nb_strbuf out = {0};
        nb_strbuf_add(&out, "");
        nb_escape_csv(&out, cells[i][0]);
        cr_expect_str_eq(out.text, cells[i][1]);
        nb_strbuf_release(&out);
    }
}

Test(reports, csv_gives_each_counter_a_column) {
    static char fields[2000][1024];
    results = nb_test_small();
    results.records[0].n_counters = 2;
    results.records[0].counters = nb_alloc(2, sizeof *results.records[0].counters);
    results.records[0].counters[0] = (struct nb_counter){.name = "instructions", .value = 4096};
    results.records[0].counters[1] = (struct nb_counter){.name = "cycles", .value = NAN, .reason = "no PMU"};
    char *text = nb_test_render("csv", &results);
    size_t n_columns = 1;
    for (const char *s = text; *s != '\r'; s++) n_columns += *s == ',';
    read_csv(text, n_columns, fields, 2000);
    cr_assert_str_eq(csv_field(fields, n_columns, 1, "instructions"), "4096");
    cr_assert_str_eq(csv_field(fields, n_columns, 2, "instructions"), "");
    for (size_t c = 0; c < n_columns; c++) {
        bool any = false;
        cr_assert_str_neq(fields[c], "cycles", "a column that no case has a value for");
        for (size_t row = 1; row < 5; row++) any |= *fields[row * n_columns + c] != '\0';
        cr_assert(any, "%s is always empty", fields[c]);
    }
}

Test(reports, markdown_has_tables_and_escapes_cells) {
    results = nb_test_small();
    free(results.records[2].reason);
    results.records[2].reason = nb_strdup("a|b <i>*c*\n`d`");
    char *text = nb_test_render("markdown", &results);
    cr_assert_not_null(strstr(text, "# normbench quick\n\n4 cases: 2 ok, 1 inaccurate, 1 skipped.\n"));
    cr_assert_not_null(strstr(text, "\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n"
                                    "| layernorm_twopass | 256 | ok | 12.35 us ±1.0% | 10.62 | 80.0% | 80.0% L2 | "
                                    "reference | 1.25 | 0.16 | +0.062 | |\n"));
    cr_assert_not_null(strstr(text, "| a\\|b &lt;i&gt;\\*c\\* \\`d\\` |\n"));
    cr_assert_not_null(strstr(text, "| 7 | no such kernel |\n"));
}

Test(reports, json_is_the_document_without_bare_nan) {
    results = nb_test_small();
    results.records[0].timing.roof.low = NAN;
    results.records[0].timing.gbytes_per_s = INFINITY;
    char *text = nb_test_render("json", &results);
    cJSON *document = kept_json(cJSON_Parse(text));
    cr_assert_not_null(document);
    cr_assert_eq(cJSON_GetArraySize(cJSON_GetObjectItem(document, "records")), 4);
    cr_assert_str_eq(cJSON_GetObjectItem(document, "config")->valuestring, "quick");
    cr_assert_null(strcasestr(text, ": nan"));
    cr_assert_null(strcasestr(text, ": inf"));
}

Test(reports, renderers_are_found_by_name_only) {
    cr_assert_null(nb_renderer_find("tabl"));
    cr_assert_null(nb_renderer_find(""));
    for (size_t i = 0; nb_renderer_at(i); i++)
        cr_assert_eq(nb_renderer_find(nb_renderer_at(i)->name), nb_renderer_at(i));
}

/* ---- escapes and figures as text ---- */

static void expect_escaped(void (*escape)(struct nb_strbuf *, const char *), const char *text, const char *want) {
    struct nb_strbuf out = {0};
    escape(&out, text);
    cr_assert_str_eq(out.text, want);
    nb_strbuf_release(&out);
}

Test(reports, escapes_leave_no_way_out) {
    expect_escaped(nb_escape_html, "<script>\"a\" & 'b'\x01",
                   "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;\xEF\xBF\xBD");
    expect_escaped(nb_escape_html, "\xC0\xBC", "\xEF\xBF\xBD\xEF\xBF\xBD"); /* an overlong '<' is no '<' */
    expect_escaped(nb_escape_gnuplot, "it's `ls` \"x\" \\\n@y", "'it\xE2\x80\x99s `ls` \"x\" \\ @y'");
    expect_escaped(nb_escape_gnuplot, "''", "'\xE2\x80\x99\xE2\x80\x99'");
    expect_escaped(nb_escape_csv, "plain", "plain");
    expect_escaped(nb_escape_csv, "a \"b\", c", "\"a \"\"b\"\", c\"");
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
    struct nb_strbuf text = {0};
    nb_strbuf_add(&text, "a\xE6\xBC\xA2z1");
    nb_utf8_cut(&text, 4, "~");
    cr_assert_str_eq(text.text, "a\xE6\xBC\xA2~");
    nb_strbuf_release(&text);
}

Test(reports, times_have_the_unit_that_suits) {
    const struct {
        double time_ns;
        const char *text;
    } times[] = {{0.5, "0.5000 ns"},
                 {999.94, "999.9 ns"},
                 {999.96, "1.000 us"},
                 {12345.678, "12.35 us"},
                 {1e6, "1.000 ms"},
                 {2.5e9, "2.500 s"},
                 {NAN, ""}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct nb_strbuf out = {0};
        nb_strbuf_add(&out, "");
        nb_format_time(&out, times[i].time_ns);
        cr_assert_str_eq(out.text, times[i].text);
        nb_strbuf_release(&out);
    }
}

Test(reports, a_share_is_0_or_100_percent_only_when_it_is) {
    const struct {
        double share;
        const char *text;
    } shares[] = {{0, "0.0%"},        {1, "100.0%"},        {0.841, "84.1%"},   {0.0005, "0.1%"},
                  {0.0004, "0.04%"},  {1e-9, "0.0000001%"}, {0.9995, "99.95%"}, {0.99999, "99.999%"},
                  {1.0004, "100.0%"}, {-1e-5, "-0.001%"}};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        struct nb_strbuf out = {0};
        nb_format_percent(&out, shares[i].share);
        cr_expect_str_eq(out.text, shares[i].text);
        nb_strbuf_release(&out);
    }
}

Test(reports, exact_numbers_read_back) {
    static const double values[] = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 123456789012345678.0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct nb_strbuf out = {0};
        nb_format_exact(&out, values[i]);
        cr_assert_eq(strtod(out.text, NULL), values[i]);
        nb_strbuf_release(&out);
    }
}
