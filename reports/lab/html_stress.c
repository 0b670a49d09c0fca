// SPDX-License-Identifier: Apache-2.0
/* The headline table of the precision page, and the command lines behind it. */
#include "reports/lab/html_stress.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/html.h"
#include "reports/text/format.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/grade.h"

/* Nothing where there was nothing to count. */
static void add_count(struct nb_strbuf *out, const cJSON *line, const char *name) {
    char text[32] = "";
    const double n = nb_json_get_number(line, name);
    if (n > 0) snprintf(text, sizeof text, "%.10g", n);
    nb_stress_cell(out, "n", text);
}

/* 99.9996 % is not 100 %. */
static void add_share(struct nb_strbuf *out, double share) {
    char text[32] = "";
    const double shown = share < 1 && share > 0.9999 ? 0.9999 : share;
    if (isfinite(share)) snprintf(text, sizeof text, "%.2f%%", 100 * shown);
    nb_stress_cell(out, "n", text);
}

/* ---- grades ---- */

static const struct column {
    const char *title, *help;
    bool right;
} columns[] = {
    {"kernel", "", false},
    {"dtype", "", false},
    {"width", "of several the worst", false},
    {"declared", "grade over the rows for which the kernel claims its accuracy", false},
    {"all", "grade over all finite rows", false},
    {"max ulp", "largest error in ulp of the exact result", true},
    {"correct", "share of correctly rounded elements", true},
    {"bias u", "largest one-sided error on random rows", true},
    {"gain u", "largest error that a row shares", true},
    {"bound", "largest error over the a-priori bound of the declared formula; above 1 is a bug", true},
    {"noise", "largest error over what half an ulp of input noise does to the exact result", true},
    {"reference", "largest error over that of a plain implementation with f32 statistics", true},
    {"NaN", "elements, over all finite rows", true},
    {"Inf", "elements, over all finite rows", true},
    {"0", "elements that are 0 in place of a number, over all finite rows", true},
    {"ns/element", "", true},
    {"formula", "what is not as usual", false},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0], TIME_COLUMN = N_COLUMNS - 2 };

/* The grade's letter is its colour; any other text has none. */
static void add_grade(const cJSON *line, const char *name, const char *why, struct nb_strbuf *out) {
    const char *grade = nb_stress_cell_text(line, name);
    const cJSON *reason = cJSON_GetObjectItemCaseSensitive(line, why);
    const bool known = *grade && strchr("ABCDF", grade[0]) && (!grade[1] || strcmp(grade, "A+") == 0);
    nb_strbuf_add(out, "<td class=\"g");
    if (known) nb_strbuf_addf(out, " g%c", grade[0]);
    nb_strbuf_add(out, "\"");
    nb_html_text(out, " title=\"", nb_stress_cell_text(reason, "text"), "\"");
    nb_html_text(out, ">", *grade ? grade : "-", "</td>");
}

static void add_line(const cJSON *line, int n_widths, bool timed, struct nb_strbuf *out) {
    char width[64];
    snprintf(width, sizeof width, n_widths > 1 ? "%.20s of %d" : "%.20s", nb_stress_cell_text(line, "width"), n_widths);
    nb_strbuf_add(out, "<tr>");
    nb_stress_cell(out, "k", nb_stress_cell_text(line, "kernel"));
    nb_stress_cell(out, "t", nb_stress_cell_text(line, "dtype"));
    nb_stress_cell(out, "t", width);
    add_grade(line, "declared", "why_declared", out);
    add_grade(line, "all", "why_all", out);
    nb_stress_number(out, nb_json_get_number(line, "componentwise_ulp"), 4);
    add_share(out, nb_json_get_number(line, "correct"));
    nb_stress_number(out, nb_json_get_number(line, "bias_u"), 2);
    nb_stress_number(out, nb_json_get_number(line, "gain_u"), 3);
    nb_stress_number(out, nb_json_get_number(line, "bound_ratio"), 2);
    nb_stress_number(out, nb_json_get_number(line, "noise_ratio"), 3);
    nb_stress_number(out, nb_json_get_number(line, "reference_ratio"), 3);
    add_count(out, line, "nan");
    add_count(out, line, "inf");
    add_count(out, line, "zero");
    if (timed) nb_stress_number(out, nb_json_get_number(line, "ns_per_element"), 3);
    nb_stress_cell(out, "k",
                   strcmp(nb_stress_cell_text(line, "formula"), "default") == 0 ? ""
                                                                                : nb_stress_cell_text(line, "formula"));
    nb_strbuf_add(out, "</tr>\n");
}

/* ---- lines of one op ---- */

/* Of the widths of a kernel the worst. */
struct graded {
    const cJSON *line;
    int n_widths;
};

struct graded_list {
    struct graded *list; /* owned */
    size_t n;
    bool timed;
};

static bool same(const cJSON *a, const cJSON *b, const char *const *names) {
    for (; *names; names++)
        if (strcmp(nb_stress_cell_text(a, *names), nb_stress_cell_text(b, *names)) != 0) return false;
    return true;
}

static int rank(const cJSON *line, const char *name) {
    const char *text = nb_stress_cell_text(line, name);
    const int grade = *text ? (int)nb_grade_parse(text) : NB_GRADE_NONE;
    return grade == NB_GRADE_NONE ? NB_N_GRADES : grade;
}

static bool is_worse(const cJSON *a, const cJSON *b) {
    const int declared = rank(a, "declared") - rank(b, "declared"), all = rank(a, "all") - rank(b, "all");
    if (declared != 0 || all != 0) return declared != 0 ? declared < 0 : all < 0;
    return nb_json_get_number(a, "componentwise_ulp") > nb_json_get_number(b, "componentwise_ulp");
}

/* Lines come sorted, so that the widths of a kernel stand together. */
static void collect(const cJSON *stress, struct graded_list *out) {
    static const char *const row[] = {"op", "kernel", "pass", "dtype", "formula", NULL};
    const cJSON *line, *lines = cJSON_GetObjectItemCaseSensitive(stress, "grades");
    *out = (struct graded_list){.list = nb_alloc((unsigned long long)cJSON_GetArraySize(lines) + 1, sizeof *out->list)};
    cJSON_ArrayForEach(line, lines) {
        struct graded *last = out->n ? &out->list[out->n - 1] : NULL;
        out->timed |= isfinite(nb_json_get_number(line, "ns_per_element"));
        if (!last || !same(last->line, line, row)) {
            out->list[out->n++] = (struct graded){line, 1};
            continue;
        }
        last->n_widths++;
        if (is_worse(line, last->line)) last->line = line;
    }
}

static bool is_low(const cJSON *line, const char *name) {
    const char *grade = nb_stress_cell_text(line, name);
    return *grade && strchr("CDF", grade[0]) && !grade[1];
}

/* What a reader looks for first: each kernel as it usually is, and what does not keep what it promises. */
static bool is_headline(const cJSON *line) {
    return strcmp(nb_stress_cell_text(line, "formula"), "default") == 0 || is_low(line, "declared");
}

static void add_table(const struct graded_list *all, size_t begin, size_t end, bool headline, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<div class=\"wrap\"><table>\n<tr>");
    for (int i = 0; i < N_COLUMNS; i++)
        if (all->timed || i != TIME_COLUMN)
            nb_strbuf_addf(out, "<th%s title=\"%s\">%s</th>", columns[i].right ? " class=\"n\"" : "", columns[i].help,
                           columns[i].title);
    nb_strbuf_add(out, "</tr>\n");
    for (size_t i = begin; i < end; i++)
        if (is_headline(all->list[i].line) == headline)
            add_line(all->list[i].line, all->list[i].n_widths, all->timed, out);
    nb_strbuf_add(out, "</table></div>\n");
}

static void add_op(const struct graded_list *all, size_t begin, size_t end, struct nb_strbuf *out) {
    const cJSON *first = all->list[begin].line;
    size_t n_headlines = 0;
    for (size_t i = begin; i < end; i++) n_headlines += is_headline(all->list[i].line);
    nb_html_text(out, "<h3>", *nb_stress_cell_text(first, "op") ? nb_stress_cell_text(first, "op") : "other", "");
    nb_strbuf_add(out, strcmp(nb_stress_cell_text(first, "pass"), "backward") == 0 ? " backward</h3>\n" : "</h3>\n");
    if (n_headlines) add_table(all, begin, end, true, out);
    if (n_headlines == end - begin) return;
    nb_strbuf_addf(out, "<details><summary>%zu with other formulas, B or better where declared</summary>\n",
                   end - begin - n_headlines);
    add_table(all, begin, end, false, out);
    nb_strbuf_add(out, "</details>\n");
}

void nb_html_grades(const cJSON *stress, struct nb_strbuf *out) {
    static const char *const table[] = {"op", "pass", NULL};
    struct graded_list all;
    collect(stress, &all);
    nb_strbuf_add(
        out, "<h2 id=\"grades\">Grades</h2>\n<p class=\"dim\">A+ correctly rounded wherever tested. A within 1 ulp and "
             "without a bias. B within the a-priori bound of the algorithm. C no worse than twice what half an ulp of "
             "input noise does. D good on the whole, lost in single elements. F NaN, Inf or 0 in place of a number. "
             "Figures are over the declared range (where y may cancel, in ulp of at least rms(y) / 16), counts over "
             "all finite rows; of several widths the worst is shown. A "
             "grade's tip says which case set it, the end of the page how to see it again.</p>\n");
    for (size_t begin = 0, end; begin < all.n; begin = end) {
        for (end = begin + 1; end < all.n && same(all.list[begin].line, all.list[end].line, table);) end++;
        add_op(&all, begin, end, out);
    }
    if (!all.n) nb_strbuf_add(out, "<p>Nothing was graded.</p>\n");
    free(all.list);
}

/* ---- command lines ---- */

static void add_replay(const char *heading, const char *kernel, const char *text, const char *replay,
                       struct nb_strbuf *out) {
    nb_strbuf_addf(out, "<p><b>%s</b> ", heading);
    nb_html_text(out, "<code>", kernel, "</code> ");
    nb_html_text(out, "", text, "");
    nb_strbuf_add(out, "</p>\n");
    nb_html_text(out, "<pre>", replay, "</pre>\n");
}

static int add_low(const cJSON *stress, const char *grade, const char *why, struct nb_strbuf *out) {
    const cJSON *line;
    int n = 0;
    cJSON_ArrayForEach(line, cJSON_GetObjectItemCaseSensitive(stress, "grades")) {
        const cJSON *reason = cJSON_GetObjectItemCaseSensitive(line, why);
        if (!is_low(line, grade)) continue;
        const char heading[2] = {nb_stress_cell_text(line, grade)[0], '\0'};
        add_replay(heading, nb_stress_cell_text(line, "variant"), nb_stress_cell_text(reason, "text"),
                   nb_stress_cell_text(reason, "replay"), out);
        n++;
    }
    return n;
}

void nb_html_replays(const cJSON *stress, struct nb_strbuf *out) {
    struct nb_strbuf lines = {0};
    const cJSON *study;
    nb_strbuf_add(out,
                  "<h2 id=\"replay\">To see it again</h2>\n<p>Below B in the range that the kernel declares:</p>\n");
    if (!add_low(stress, "declared", "why_declared", out)) nb_strbuf_add(out, "<p class=\"dim\">None.</p>\n");
    nb_strbuf_add(&lines, "");
    int n = add_low(stress, "all", "why_all", &lines);
    nb_strbuf_addf(out, "<details><summary>Below B over all finite rows: %d</summary>\n", n);
    nb_strbuf_add(out, lines.text);
    nb_strbuf_add(out, "</details>\n");
    nb_strbuf_clear(&lines);
    n = 0;
    cJSON_ArrayForEach(study, cJSON_GetObjectItemCaseSensitive(stress, "studies")) {
        const char *status = nb_stress_cell_text(study, "status");
        if (!*status || strcmp(status, "ok") == 0) continue;
        add_replay("not searched", nb_stress_cell_text(study, "variant"), nb_stress_cell_text(study, "reason"),
                   nb_stress_cell_text(study, "replay"), &lines);
        n++;
    }
    if (n) nb_strbuf_addf(out, "<details><summary>Studies that did not end: %d</summary>\n", n);
    if (n) nb_strbuf_add(out, lines.text);
    if (n) nb_strbuf_add(out, "</details>\n");
    nb_strbuf_release(&lines);
}
