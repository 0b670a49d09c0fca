// SPDX-License-Identifier: Apache-2.0
/* The precision page of a stress run and its pictures. Its sections are made from stress.json (reports/schema/stress.schema.json), which
 * may be partial. */
#include "reports/lab/stress_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/format.h"
#include "src/core/json.h"
#include "src/lab/stress/stress.h"

static void add_number(struct nb_strbuf *out, const char *class, double value, int digits) {
    struct nb_strbuf text released_by(nb_strbuf_release) = nb_strbuf_empty();
    nb_format_digits(&text, value, digits);
    nb_html_cell(out, class, text.text);
}

/* ---- grades ---- */

/* The grade's letter is its colour; any other text has none. */
static void add_grade(const cJSON *line, const struct nb_grade_column *column, const char *text,
                      struct nb_strbuf *out) {
    const char *grade = nb_json_get_string(line, column->key);
    const bool known = *grade && strchr("ABCDF", grade[0]) && (!grade[1] || strcmp(grade, "A+") == 0);
    char why[32];
    snprintf(why, sizeof why, "why_%s", column->key);
    nb_strbuf_add(out, "<td class=\"g");
    if (known) nb_strbuf_addf(out, " g%c", grade[0]);
    nb_strbuf_add(out, "\"");
    nb_html_text(out, " title=\"", nb_json_get_string(nb_json_get(line, why), "text"), "\"");
    nb_strbuf_add(out, ">");
    nb_html_text(out, "", text, "");
}

static const char *class_of(const struct nb_grade_column *column) {
    if (strcmp(column->key, "kernel") == 0) return "k";
    return nb_grade_column_is_figure(column) ? "n" : column->kind == NB_CELL_GRADE ? "g" : "";
}

static void add_line(const struct nb_stress_line *graded, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<tr>");
    for (int i = 0; i < NB_N_GRADE_COLUMNS; i++) {
        const struct nb_grade_column *column = &nb_grade_columns[i];
        struct nb_strbuf text released_by(nb_strbuf_release) = {0};
        nb_grade_cell(column, graded, column->digits, &text);
        if (column->kind == NB_CELL_GRADE)
            add_grade(graded->line, column, text.text, out);
        else
            nb_html_cell(out, class_of(column), text.text);
    }
    nb_strbuf_add(out, "\n");
}

/* ---- the answer: each kernel's grades with its usual formula, and how many lines are low ---- */

static const cJSON *usual_line(const struct nb_stress_lines *all, const cJSON *of, const char *dtype) {
    for (size_t i = 0; i < all->n; i++) {
        const cJSON *line = all->list[i].line;
        if (nb_json_same_text(line, of, "kernel") && nb_json_is(line, "dtype", dtype) &&
            nb_json_is(line, "formula", "default"))
            return line;
    }
    return NULL;
}

/* "B, all F" in the colour of the first; "A" where both are the same. */
static void add_both_grades(const cJSON *line, struct nb_strbuf *out) {
    const struct nb_grade_column declared = {.key = "declared"};
    const char *first = nb_json_get_string(line, "declared"), *all = nb_json_get_string(line, "all");
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(&text, first);
    if (*all && strcmp(first, all) != 0) nb_strbuf_addf(&text, ", all %s", all);
    if (line)
        add_grade(line, &declared, text.text, out);
    else
        nb_html_cell(out, "", "");
}

static void add_answer(const struct nb_stress_lines *all, struct nb_strbuf *out) {
    bool has[NB_N_DTYPES] = {false};
    size_t n_low = 0;
    for (size_t i = 0; i < all->n; i++) {
        n_low += nb_stress_is_low(all->list[i].line, "declared");
        for (int d = 0; d < NB_N_DTYPES; d++) has[d] |= nb_json_is(all->list[i].line, "dtype", nb_formats[d].name);
    }
    if (!all->n) return;
    nb_strbuf_addf(out,
                   "<p>%zu of %zu kernels and formulas are below B in the range that they declare%s. Usual formulas, "
                   "and all where the grade over all finite rows differs:</p>\n<div class=wrap><table>\n<tr><th>kernel",
                   n_low, all->n, n_low ? " (<a href=#replay>which</a>)" : "");
    for (int d = 0; d < NB_N_DTYPES; d++)
        if (has[d]) nb_strbuf_addf(out, "<th>%s", nb_formats[d].name);
    for (size_t i = 0; i < all->n; i++) {
        const cJSON *line = all->list[i].line;
        if (i > 0 && nb_json_same_text(line, all->list[i - 1].line, "kernel")) continue;
        nb_strbuf_add(out, "\n<tr>");
        nb_html_cell(out, "k", nb_json_get_string(line, "kernel"));
        for (int d = 0; d < NB_N_DTYPES; d++)
            if (has[d]) add_both_grades(usual_line(all, line, nb_formats[d].name), out);
    }
    nb_strbuf_add(out, "\n</table></div>\n");
}

/* ---- lines of one op ---- */

/* What a reader looks for first: each kernel as it usually is, and what does not keep what it promises. */
static bool is_headline(const cJSON *line) {
    return nb_json_is(line, "formula", "default") || nb_stress_is_low(line, "declared");
}

static void add_table(const struct nb_stress_lines *all, size_t begin, size_t end, bool headline,
                      struct nb_strbuf *out) {
    nb_strbuf_add(out, "<div class=wrap><table class=rows>\n<tr>");
    for (int i = 0; i < NB_N_GRADE_COLUMNS; i++) {
        const struct nb_grade_column *column = &nb_grade_columns[i];
        nb_strbuf_addf(out, "<th class=\"%s\" title=\"%s\">%s", class_of(column), column->help, column->title);
    }
    nb_strbuf_add(out, "\n");
    for (size_t i = begin; i < end; i++)
        if (is_headline(all->list[i].line) == headline) add_line(&all->list[i], out);
    nb_strbuf_add(out, "</table></div>\n");
}

static void add_op(const struct nb_stress_lines *all, size_t begin, size_t end, struct nb_strbuf *out) {
    const cJSON *first = all->list[begin].line;
    size_t n_headlines = 0;
    for (size_t i = begin; i < end; i++) n_headlines += is_headline(all->list[i].line);
    nb_html_text(out, "<h3>", *nb_json_get_string(first, "op") ? nb_json_get_string(first, "op") : "other", "");
    nb_strbuf_add(out, nb_json_is(first, "pass", "backward") ? " backward</h3>\n" : "</h3>\n");
    if (n_headlines) add_table(all, begin, end, true, out);
    if (n_headlines == end - begin) return;
    nb_strbuf_addf(out, "<details><summary>%zu with other formulas, B or better where declared</summary>\n",
                   end - begin - n_headlines);
    add_table(all, begin, end, false, out);
    nb_strbuf_add(out, "</details>\n");
}

static bool is_same_op(const cJSON *a, const cJSON *b) {
    return nb_json_same_text(a, b, "op") && nb_json_same_text(a, b, "pass");
}

static void add_grades_section(const struct nb_stress_lines *all, struct nb_strbuf *out) {
    nb_strbuf_add(
        out,
        "<h2 id=\"grades\">Grades</h2>\n"
        "<p class=\"dim\">A+ correctly rounded wherever tested. A within 1 ulp and without a bias. B within the "
        "a-priori bound of the algorithm, and half of the digits right in norm. C no worse than twice the effect of half an "
        "ulp of input noise. D right in norm but not in single elements, or within the bound and at most 10 % off in norm. "
        "F NaN, Inf or 0 in place of a number, or more than that. Figures are over the declared range "
        "(where y may cancel, in ulp of at least rms(y) / 16), counts over all finite rows; of several widths the "
        "worst is shown. Hover over a grade for the case that set it; the end of the page has the commands that reproduce it.</p>\n");
    for (size_t begin = 0, end; begin < all->n; begin = end) {
        for (end = begin + 1; end < all->n && is_same_op(all->list[begin].line, all->list[end].line);) end++;
        add_op(all, begin, end, out);
    }
    if (!all->n) nb_strbuf_add(out, "<p>Nothing was graded.</p>\n");
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
    cJSON_ArrayForEach(line, nb_json_get(stress, "grades")) {
        const cJSON *reason = nb_json_get(line, why);
        const char heading[2] = {nb_json_get_string(line, grade)[0], '\0'};
        if (!nb_stress_is_low(line, grade)) continue;
        add_replay(heading, nb_json_get_string(line, "variant"), nb_json_get_string(reason, "text"),
                   nb_json_get_string(reason, "replay"), out);
        n++;
    }
    return n;
}

static void add_replays_section(const cJSON *stress, struct nb_strbuf *out) {
    struct nb_strbuf lines released_by(nb_strbuf_release) = nb_strbuf_empty();
    const cJSON *study;
    nb_strbuf_add(out,
                  "<h2 id=\"replay\">To reproduce it</h2>\n<p>Below B in the range that the kernel declares:</p>\n");
    if (!add_low(stress, "declared", "why_declared", out)) nb_strbuf_add(out, "<p class=\"dim\">None.</p>\n");
    int n = add_low(stress, "all", "why_all", &lines);
    nb_strbuf_addf(out, "<details><summary>Below B over all finite rows: %d</summary>\n%s</details>\n", n, lines.text);
    nb_strbuf_clear(&lines);
    n = 0;
    cJSON_ArrayForEach(study, nb_json_get(stress, "studies")) {
        const char *status = nb_json_get_string(study, "status");
        if (!*status || strcmp(status, "ok") == 0) continue;
        add_replay("not searched", nb_json_get_string(study, "variant"), nb_json_get_string(study, "reason"),
                   nb_json_get_string(study, "replay"), &lines);
        n++;
    }
    if (n)
        nb_strbuf_addf(out, "<details><summary>Studies that did not finish: %d</summary>\n%s</details>\n", n,
                       lines.text);
}

/* ---- frontiers ---- */

/* What was searched: a limit, the absence of one, or nothing right to begin with. */
static void add_limit(const cJSON *frontier, const char *which, struct nb_strbuf *out) {
    const char *status = nb_json_get_string(frontier, "status");
    const bool bad = strcmp(which, "bad") == 0;
    const char *class = bad ? "n" : "n m";
    if (strcmp(status, "none") == 0)
        nb_html_cell(out, class, bad ? "" : "no limit");
    else if (strcmp(status, "never") == 0)
        nb_html_cell(out, class, bad ? "" : "never");
    else
        add_number(out, class, nb_json_get_number(frontier, which), 5);
}

static void add_frontier(const cJSON *study, const cJSON *frontier, struct nb_strbuf *out) {
    const double ratio = nb_json_get_number(frontier, "ratio");
    const bool off = ratio > 4 || ratio < 0.25;
    if (nb_json_is(frontier, "status", "does_not_apply")) return;
    nb_strbuf_add(out, off ? "<tr class=\"doubt\">" : "<tr>");
    nb_html_cell(out, "k", nb_json_get_string(study, "variant"));
    nb_html_cell(out, "", nb_json_get_string(frontier, "of"));
    add_limit(frontier, "good", out);
    add_limit(frontier, "bad", out);
    add_number(out, "n", nb_json_get_number(frontier, "predicted"), 5);
    add_number(out, "n", ratio, 3);
    nb_html_cell(out, "w", nb_json_get_string(frontier, "rule"));
    nb_strbuf_add(out, "\n");
}

static const char frontiers_head[] =
    "<h2 id=\"frontiers\">How far each can be taken</h2>\n"
    "<p class=\"dim\">The last value that is right and the first that is not, found by bisection, beside the "
    "closed form. A ratio far from 1 means that the theory or the kernel is not what it is assumed to be.</p>\n"
    "<details open><summary>Frontiers</summary><div class=wrap><table class=rows>\n"
    "<tr><th class=k>variant<th>frontier<th class=\"n m\">holds to<th class=n>fails at<th class=n>predicted<th class=n>ratio<th class=w>predicted by\n";

/* ---- worst rows ---- */

static void add_worst(const cJSON *study, const cJSON *worst, struct nb_strbuf *out) {
    if (!isfinite(nb_json_get_number(worst, "value"))) return;
    nb_strbuf_add(out, cJSON_IsTrue(nb_json_get(worst, "violation")) ? "<tr class=\"bad\">" : "<tr>");
    nb_html_cell(out, "k", nb_json_get_string(study, "variant"));
    nb_html_cell(out, "", nb_json_get_string(worst, "objective"));
    add_number(out, "n m", nb_json_get_number(worst, "value"), 4);
    add_number(out, "n", nb_json_get_number(worst, "scaled_ulp"), 4);
    nb_html_cell(out, "", nb_json_get_string(worst, "generator"));
    nb_html_text(out, "<td class=w><code>", nb_json_get_string(worst, "replay"), "</code>");
    nb_strbuf_add(out, "\n");
}

static const char worst_head[] =
    "<h2 id=\"worst\">Worst rows found</h2>\n"
    "<p class=\"dim\">By greedy rows along the kernel's own order of summation, by zooming in and by "
    "climbing, within the rows that the kernel claims its accuracy for.</p>\n"
    "<details><summary>Rows</summary><div class=wrap><table class=rows>\n"
    "<tr><th class=k>variant<th>objective<th class=\"n m\">value<th class=n>ulp, scaled<th>generator<th class=w>again\n";

/* A row for each item of the studies' lists, or none; nothing at all where no item has one. */
static void add_items(const cJSON *stress, const char *list, const char *head,
                      void (*add)(const cJSON *study, const cJSON *item, struct nb_strbuf *out),
                      struct nb_strbuf *out) {
    struct nb_strbuf rows released_by(nb_strbuf_release) = {0};
    const cJSON *study, *item;
    cJSON_ArrayForEach(study, nb_json_get(stress, "studies")) {
        cJSON_ArrayForEach(item, nb_json_get(study, list)) add(study, item, &rows);
    }
    if (rows.len) nb_strbuf_addf(out, "%s%s</table></div></details>\n", head, rows.text);
}

/* ---- public bugs ---- */

/* Each kernel once; its variants, formulas and figures unfold. */
static void add_who(const cJSON *list, struct nb_strbuf *out) {
    const cJSON *who;
    bool first = true;
    nb_strbuf_addf(out, "<td class=\"w\"><details><summary>%d: ", cJSON_GetArraySize(list));
    cJSON_ArrayForEach(who, list) {
        const char *kernel = nb_json_get_string(who, "kernel");
        if (nb_stress_is_named_before(list, who)) continue;
        nb_html_text(out, first ? "" : ", ", *kernel ? kernel : nb_json_get_string(who, "variant"), "");
        first = false;
    }
    nb_strbuf_add(out, first ? "none</summary>" : "</summary><ul>\n");
    cJSON_ArrayForEach(who, list) {
        nb_strbuf_add(out, "<li>");
        nb_html_text(out, "<b>", nb_json_get_string(who, "grade"), "</b> ");
        nb_html_text(out, "<code>", nb_json_get_string(who, "variant"), "</code> ");
        if (!nb_json_is(who, "formula", "default")) nb_html_text(out, "", nb_json_get_string(who, "formula"), " ");
        nb_html_text(out, "", nb_json_get_string(who, "text"), "");
        nb_strbuf_add(out, "</li>\n");
    }
    nb_strbuf_add(out, first ? "</details>" : "</ul></details>");
}

static void add_bugs_section(const cJSON *stress, struct nb_strbuf *out) {
    const cJSON *bug, *bugs = nb_json_get(stress, "bugs");
    if (cJSON_GetArraySize(bugs) == 0) return;
    nb_strbuf_add(
        out,
        "<h2 id=\"bugs\">Inputs of public bug reports</h2>\n"
        "<p class=\"dim\">Grades D and F fail, C and better survive.</p>\n"
        "<div class=wrap><table class=rows>\n"
        "<tr><th class=k>report<th class=w>essence<th class=w>fail<th class=w>survive<th class=w>worst, and how to reproduce it\n");
    cJSON_ArrayForEach(bug, bugs) {
        const cJSON *worst = nb_json_get(bug, "worst");
        nb_strbuf_add(out, "<tr>");
        nb_html_cell(out, "k", nb_json_get_string(bug, "label"));
        nb_html_cell(out, "w", nb_json_get_string(bug, "text"));
        add_who(nb_json_get(bug, "failed"), out);
        add_who(nb_json_get(bug, "survived"), out);
        nb_html_text(out, "<td class=\"w\">", nb_json_get_string(worst, "text"), "");
        if (!*nb_json_get_string(worst, "text")) nb_strbuf_add(out, "<td>");
        nb_html_text(out, "<br><code>", nb_json_get_string(worst, "replay"), "</code>");
        nb_strbuf_add(out, "\n");
    }
    nb_strbuf_add(out, "</table></div>\n");
}

/* ---- the page ---- */

static void add_top(const struct nb_results *meta, const cJSON *stress, struct nb_strbuf *out) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_html_head("precision", out);
    nb_strbuf_add(out, "<h1>Precision");
    nb_html_text(out, ": ", nb_meta_text(meta, "config"), "");
    nb_strbuf_add(out, "</h1>\n");
    nb_meta_footer(meta, &text);
    nb_html_text(out, "<p class=\"dim\">", text.text, "</p>\n");
    if (cJSON_IsFalse(nb_json_get(stress, "complete")))
        nb_strbuf_add(out,
                      "<p class=\"bad\">The run did not reach all cases or studies: grades may be too good.</p>\n");
    nb_strbuf_add(
        out,
        "<nav><a href=\"#grades\">grades</a><a href=\"#bugs\">public bugs</a><a href=\"#frontiers\">frontiers</a><a "
        "href=\"#worst\">worst rows</a><a href=\"#maps\">maps</a><a href=\"#replay\">how "
        "to reproduce it</a></nav>\n");
}

enum { N_KEY_MAPS = 2 }; /* behind the answer */

int nb_stress_report(const char *dir, const cJSON *stress) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)stress};
    struct nb_figures figures released_by(nb_figures_release);
    struct nb_stress_lines lines;
    struct nb_strbuf page released_by(nb_strbuf_release) = {0};
    const struct nb_html_pictures pictures = {&figures, dir, NB_STRESS_PLOTS};
    char *path freed = nb_path_join(dir, NB_STRESS_PAGE);
    nb_stress_figures_init(&figures, stress);
    int result = nb_figures_write(&figures, dir, NB_STRESS_PLOTS);
    nb_stress_lines_init(&lines, stress);
    add_top(&meta, stress, &page);
    add_answer(&lines, &page);
    nb_strbuf_add(&page, "<div class=plots>\n");
    nb_html_figures(&pictures, "map-", 0, N_KEY_MAPS, &page);
    nb_strbuf_add(&page, "</div>\n");
    add_grades_section(&lines, &page);
    add_bugs_section(stress, &page);
    add_items(stress, "frontiers", frontiers_head, add_frontier, &page);
    add_items(stress, "worst", worst_head, add_worst, &page);
    nb_strbuf_add(&page, "<h2 id=maps>Error over scale and offset</h2>\n");
    nb_html_more_figures(&pictures, "map-", N_KEY_MAPS, "Maps", &page);
    nb_html_not_drawn(&figures, &page);
    add_replays_section(stress, &page);
    nb_strbuf_add(&page, "<p>The files beside this page: <a href=\"" NB_STRESS_FILE "\">" NB_STRESS_FILE
                         "</a>, <a href=\"" NB_STRESS_PLOTS "/\">" NB_STRESS_PLOTS "/</a>.</p>\n");
    nb_html_end(&page);
    if (nb_file_write(path, page.text, page.len) != 0) result = -1;
    free(lines.list);
    return result;
}

int nb_stress_report_read(const char *dir) {
    if (!nb_dir_holds(dir, NB_STRESS_FILE)) return 1;
    cJSON *stress released_by(nb_json_release) = nb_stress_read(dir);
    if (!stress) return -1;
    return nb_stress_report(dir, stress);
}
