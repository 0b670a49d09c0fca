// SPDX-License-Identifier: Apache-2.0
/* The precision page of a stress run and its pictures. Its sections are made from stress.json (reports/schema/stress.schema.json), which
 * may be partial. */
#include "reports/lab/stress_report.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/lab/plot_stress.h"
#include "reports/run/html.h"
#include "reports/run/summary.h"
#include "reports/text/format.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/lab/stress/stress.h"
#include "src/record/grade.h"

static const char *cell_text(const cJSON *object, const char *name) {
    const char *text = nb_json_get_text(object, name);
    return text ? text : "";
}

static void add_cell(struct nb_strbuf *out, const char *kind, const char *text) {
    nb_strbuf_addf(out, "<td class=\"%s\">", kind);
    nb_html_text(out, "", text, "");
    nb_strbuf_add(out, "</td>");
}

static void add_number(struct nb_strbuf *out, double value, int digits) {
    struct nb_strbuf text = {0};
    nb_strbuf_add(&text, "");
    nb_format_digits(&text, value, digits);
    add_cell(out, "n", text.text);
    nb_strbuf_release(&text);
}

/* Nothing where there was nothing to count. */
static void add_count(struct nb_strbuf *out, const cJSON *line, const char *name) {
    char text[32] = "";
    const double n = nb_json_get_number(line, name);
    if (n > 0) snprintf(text, sizeof text, "%.10g", n);
    add_cell(out, "n", text);
}

/* 99.9996 % is not 100 %. */
static void add_share(struct nb_strbuf *out, double share) {
    char text[32] = "";
    const double shown = share < 1 && share > 0.9999 ? 0.9999 : share;
    if (isfinite(share)) snprintf(text, sizeof text, "%.2f%%", 100 * shown);
    add_cell(out, "n", text);
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
    const char *grade = cell_text(line, name);
    const cJSON *reason = cJSON_GetObjectItemCaseSensitive(line, why);
    const bool known = *grade && strchr("ABCDF", grade[0]) && (!grade[1] || strcmp(grade, "A+") == 0);
    nb_strbuf_add(out, "<td class=\"g");
    if (known) nb_strbuf_addf(out, " g%c", grade[0]);
    nb_strbuf_add(out, "\"");
    nb_html_text(out, " title=\"", cell_text(reason, "text"), "\"");
    nb_html_text(out, ">", *grade ? grade : "-", "</td>");
}

static void add_line(const cJSON *line, int n_widths, bool timed, struct nb_strbuf *out) {
    char width[64];
    snprintf(width, sizeof width, n_widths > 1 ? "%.20s of %d" : "%.20s", cell_text(line, "width"), n_widths);
    nb_strbuf_add(out, "<tr>");
    add_cell(out, "k", cell_text(line, "kernel"));
    add_cell(out, "t", cell_text(line, "dtype"));
    add_cell(out, "t", width);
    add_grade(line, "declared", "why_declared", out);
    add_grade(line, "all", "why_all", out);
    add_number(out, nb_json_get_number(line, "componentwise_ulp"), 4);
    add_share(out, nb_json_get_number(line, "correct"));
    add_number(out, nb_json_get_number(line, "bias_u"), 2);
    add_number(out, nb_json_get_number(line, "gain_u"), 3);
    add_number(out, nb_json_get_number(line, "bound_ratio"), 2);
    add_number(out, nb_json_get_number(line, "noise_ratio"), 3);
    add_number(out, nb_json_get_number(line, "reference_ratio"), 3);
    add_count(out, line, "nan");
    add_count(out, line, "inf");
    add_count(out, line, "zero");
    if (timed) add_number(out, nb_json_get_number(line, "ns_per_element"), 3);
    add_cell(out, "k", strcmp(cell_text(line, "formula"), "default") == 0 ? "" : cell_text(line, "formula"));
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
        if (strcmp(cell_text(a, *names), cell_text(b, *names)) != 0) return false;
    return true;
}

static int rank(const cJSON *line, const char *name) {
    const char *text = cell_text(line, name);
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
    const char *grade = cell_text(line, name);
    return *grade && strchr("CDF", grade[0]) && !grade[1];
}

/* What a reader looks for first: each kernel as it usually is, and what does not keep what it promises. */
static bool is_headline(const cJSON *line) {
    return strcmp(cell_text(line, "formula"), "default") == 0 || is_low(line, "declared");
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
    nb_html_text(out, "<h3>", *cell_text(first, "op") ? cell_text(first, "op") : "other", "");
    nb_strbuf_add(out, strcmp(cell_text(first, "pass"), "backward") == 0 ? " backward</h3>\n" : "</h3>\n");
    if (n_headlines) add_table(all, begin, end, true, out);
    if (n_headlines == end - begin) return;
    nb_strbuf_addf(out, "<details><summary>%zu with other formulas, B or better where declared</summary>\n",
                   end - begin - n_headlines);
    add_table(all, begin, end, false, out);
    nb_strbuf_add(out, "</details>\n");
}

static void add_grades_section(const cJSON *stress, struct nb_strbuf *out) {
    static const char *const table[] = {"op", "pass", NULL};
    struct graded_list all;
    collect(stress, &all);
    nb_strbuf_add(
        out,
        "<h2 id=\"grades\">Grades</h2>\n"
        "<p class=\"dim\">A+ correctly rounded wherever tested. A within 1 ulp and without a bias. B within the "
        "a-priori bound of the algorithm. C no worse than twice the effect of half an ulp of input noise. D good as a "
        "whole, lost in single elements. F NaN, Inf or 0 in place of a number. Figures are over the declared range "
        "(where y may cancel, in ulp of at least rms(y) / 16), counts over all finite rows; of several widths the "
        "worst is shown. Hover over a grade for the case that set it; the end of the page has the commands that reproduce it.</p>\n");
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
        const char heading[2] = {cell_text(line, grade)[0], '\0'};
        add_replay(heading, cell_text(line, "variant"), cell_text(reason, "text"), cell_text(reason, "replay"), out);
        n++;
    }
    return n;
}

static void add_replays_section(const cJSON *stress, struct nb_strbuf *out) {
    struct nb_strbuf lines = {0};
    const cJSON *study;
    nb_strbuf_add(out,
                  "<h2 id=\"replay\">To reproduce it</h2>\n<p>Below B in the range that the kernel declares:</p>\n");
    if (!add_low(stress, "declared", "why_declared", out)) nb_strbuf_add(out, "<p class=\"dim\">None.</p>\n");
    nb_strbuf_add(&lines, "");
    int n = add_low(stress, "all", "why_all", &lines);
    nb_strbuf_addf(out, "<details><summary>Below B over all finite rows: %d</summary>\n", n);
    nb_strbuf_add(out, lines.text);
    nb_strbuf_add(out, "</details>\n");
    nb_strbuf_clear(&lines);
    n = 0;
    cJSON_ArrayForEach(study, cJSON_GetObjectItemCaseSensitive(stress, "studies")) {
        const char *status = cell_text(study, "status");
        if (!*status || strcmp(status, "ok") == 0) continue;
        add_replay("not searched", cell_text(study, "variant"), cell_text(study, "reason"), cell_text(study, "replay"),
                   &lines);
        n++;
    }
    if (n) nb_strbuf_addf(out, "<details><summary>Studies that did not finish: %d</summary>\n", n);
    if (n) nb_strbuf_add(out, lines.text);
    if (n) nb_strbuf_add(out, "</details>\n");
    nb_strbuf_release(&lines);
}

/* ---- frontiers ---- */

/* What was searched: a limit, the absence of one, or nothing right to begin with. */
static void add_limit(const cJSON *frontier, const char *which, struct nb_strbuf *out) {
    const char *status = cell_text(frontier, "status");
    if (strcmp(status, "none") == 0)
        add_cell(out, "n", strcmp(which, "bad") == 0 ? "" : "no limit");
    else if (strcmp(status, "never") == 0)
        add_cell(out, "n", strcmp(which, "bad") == 0 ? "" : "never");
    else
        add_number(out, nb_json_get_number(frontier, which), 5);
}

static void add_frontier(const cJSON *study, const cJSON *frontier, struct nb_strbuf *out) {
    const double ratio = nb_json_get_number(frontier, "ratio");
    const bool off = ratio > 4 || ratio < 0.25;
    nb_strbuf_add(out, off ? "<tr class=\"doubt\">" : "<tr>");
    add_cell(out, "k", cell_text(study, "variant"));
    add_cell(out, "t", cell_text(frontier, "of"));
    add_cell(out, "t", cell_text(frontier, "demand"));
    add_limit(frontier, "good", out);
    add_limit(frontier, "bad", out);
    add_number(out, nb_json_get_number(frontier, "predicted"), 5);
    add_number(out, ratio, 3);
    add_cell(out, "w", cell_text(frontier, "rule"));
    nb_strbuf_add(out, "</tr>\n");
}

static void add_frontiers_section(const cJSON *stress, struct nb_strbuf *out) {
    const cJSON *study, *frontier;
    bool any = false;
    cJSON_ArrayForEach(study, cJSON_GetObjectItemCaseSensitive(stress, "studies")) {
        cJSON_ArrayForEach(frontier, cJSON_GetObjectItemCaseSensitive(study, "frontiers")) {
            if (strcmp(cell_text(frontier, "status"), "does_not_apply") == 0) continue;
            if (!any)
                nb_strbuf_add(
                    out,
                    "<h2 id=\"frontiers\">How far each can be taken</h2>\n"
                    "<p class=\"dim\">The last value that is right and the first that is not, found by bisection, beside the "
                    "closed form. A ratio far from 1 means that the theory or the kernel is not what it is assumed to be.</p>\n"
                    "<details open><summary>Frontiers</summary><div class=\"wrap\"><table>\n"
                    "<tr><th>variant</th><th>frontier</th><th>demand</th><th class=\"n\">holds to</th><th class=\"n\">fails "
                    "at</th><th class=\"n\">predicted</th><th class=\"n\">ratio</th><th>predicted by</th></tr>\n");
            any = true;
            add_frontier(study, frontier, out);
        }
    }
    if (any) nb_strbuf_add(out, "</table></div></details>\n");
}

/* ---- worst rows ---- */

static void add_worst(const cJSON *study, const cJSON *worst, struct nb_strbuf *out) {
    nb_strbuf_add(out,
                  cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(worst, "violation")) ? "<tr class=\"bad\">" : "<tr>");
    add_cell(out, "k", cell_text(study, "variant"));
    add_cell(out, "t", cell_text(worst, "objective"));
    add_number(out, nb_json_get_number(worst, "value"), 4);
    add_number(out, nb_json_get_number(worst, "scaled_ulp"), 4);
    add_cell(out, "t", cell_text(worst, "generator"));
    nb_html_text(out, "<td class=\"w\"><code>", cell_text(worst, "replay"), "</code></td>");
    nb_strbuf_add(out, "</tr>\n");
}

static void add_worst_section(const cJSON *stress, struct nb_strbuf *out) {
    const cJSON *study, *worst;
    bool any = false;
    cJSON_ArrayForEach(study, cJSON_GetObjectItemCaseSensitive(stress, "studies")) {
        cJSON_ArrayForEach(worst, cJSON_GetObjectItemCaseSensitive(study, "worst")) {
            if (!isfinite(nb_json_get_number(worst, "value"))) continue;
            if (!any)
                nb_strbuf_add(
                    out,
                    "<h2 id=\"worst\">Worst rows found</h2>\n"
                    "<p class=\"dim\">By greedy rows along the kernel's own order of summation, by order, by zooming in and by "
                    "climbing, within the rows that the kernel claims its accuracy for.</p>\n"
                    "<details><summary>Rows</summary><div class=\"wrap\"><table>\n"
                    "<tr><th>variant</th><th>objective</th><th class=\"n\">value</th><th class=\"n\">ulp, "
                    "scaled</th><th>generator</th><th>again</th></tr>\n");
            any = true;
            add_worst(study, worst, out);
        }
    }
    if (any) nb_strbuf_add(out, "</table></div></details>\n");
}

/* ---- public bugs ---- */

static bool is_named_before(const cJSON *list, const cJSON *until, const char *kernel) {
    for (const cJSON *who = list->child; who && who != until; who = who->next)
        if (strcmp(cell_text(who, "kernel"), kernel) == 0) return true;
    return false;
}

/* Each kernel once; its variants, formulas and figures unfold. */
static void add_who(const cJSON *list, struct nb_strbuf *out) {
    const cJSON *who;
    bool first = true;
    nb_strbuf_addf(out, "<td class=\"w\"><details><summary>%d: ", cJSON_GetArraySize(list));
    cJSON_ArrayForEach(who, list) {
        const char *kernel = cell_text(who, "kernel");
        if (is_named_before(list, who, kernel)) continue;
        nb_html_text(out, first ? "" : ", ", *kernel ? kernel : cell_text(who, "variant"), "");
        first = false;
    }
    nb_strbuf_add(out, first ? "none</summary>" : "</summary><ul>\n");
    cJSON_ArrayForEach(who, list) {
        nb_strbuf_add(out, "<li>");
        nb_html_text(out, "<b>", cell_text(who, "grade"), "</b> ");
        nb_html_text(out, "<code>", cell_text(who, "variant"), "</code> ");
        if (strcmp(cell_text(who, "formula"), "default") != 0) nb_html_text(out, "", cell_text(who, "formula"), " ");
        nb_html_text(out, "", cell_text(who, "text"), "");
        nb_strbuf_add(out, "</li>\n");
    }
    nb_strbuf_add(out, first ? "</details></td>" : "</ul></details></td>");
}

static void add_bugs_section(const cJSON *stress, struct nb_strbuf *out) {
    const cJSON *bug, *bugs = cJSON_GetObjectItemCaseSensitive(stress, "bugs");
    if (cJSON_GetArraySize(bugs) == 0) return;
    nb_strbuf_add(
        out,
        "<h2 id=\"bugs\">Inputs of public bug reports</h2>\n"
        "<p class=\"dim\">Grades D and F fail, C and better survive.</p>\n"
        "<div class=\"wrap\"><table>\n"
        "<tr><th>report</th><th>essence</th><th>fail</th><th>survive</th><th>worst, and how to reproduce it</th></tr>\n");
    cJSON_ArrayForEach(bug, bugs) {
        const cJSON *worst = cJSON_GetObjectItemCaseSensitive(bug, "worst");
        nb_strbuf_add(out, "<tr>");
        add_cell(out, "t", cell_text(bug, "label"));
        add_cell(out, "w", cell_text(bug, "text"));
        add_who(cJSON_GetObjectItemCaseSensitive(bug, "failed"), out);
        add_who(cJSON_GetObjectItemCaseSensitive(bug, "survived"), out);
        nb_html_text(out, "<td class=\"w\">", cell_text(worst, "text"), "");
        if (!*cell_text(worst, "text")) nb_strbuf_add(out, "<td>");
        nb_html_text(out, "<br><code>", cell_text(worst, "replay"), "</code>");
        nb_strbuf_add(out, "</td></tr>\n");
    }
    nb_strbuf_add(out, "</table></div>\n");
}

/* ---- the page ---- */

enum { LARGEST_FILE = 1 << 26 };

static void add_top(const struct nb_results *meta, const cJSON *stress, struct nb_strbuf *out) {
    struct nb_strbuf text = {0};
    nb_html_head("precision", out);
    nb_strbuf_add(out, "<h1>Precision");
    nb_html_text(out, ": ", nb_meta_text(meta, "config"), "");
    nb_strbuf_add(out, "</h1>\n");
    nb_meta_footer(meta, &text);
    nb_html_text(out, "<p class=\"dim\">", text.text, "</p>\n");
    if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(stress, "complete")))
        nb_strbuf_add(out,
                      "<p class=\"bad\">The run did not reach all cases or studies: grades may be too good.</p>\n");
    nb_strbuf_add(
        out,
        "<nav><a href=\"#grades\">grades</a><a href=\"#bugs\">public bugs</a><a href=\"#frontiers\">frontiers</a><a "
        "href=\"#worst\">worst rows</a><a href=\"#curves\">curves</a><a href=\"#maps\">maps</a><a href=\"#replay\">how "
        "to reproduce it</a></nav>\n");
    nb_strbuf_release(&text);
}

/* Maps and the rest apart, since there is one for each kernel. */
static void add_figures(struct nb_figures *figures, const char *dir, struct nb_strbuf *out) {
    static const char *const curves[] = {"error-", "histogram-", "frontier-", "depth"};
    nb_strbuf_add(out, "<h2 id=\"curves\">Error against one thing at a time</h2>\n");
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++)
        nb_html_figures(figures, curves[i], dir, NB_STRESS_PLOTS, out);
    nb_strbuf_add(out, "<h2 id=\"maps\">Error over scale and offset</h2>\n");
    nb_html_figures(figures, "map-", dir, NB_STRESS_PLOTS, out);
    nb_html_not_drawn(figures, out);
}

/* Null when it is not there, or no JSON, which is said. */
static cJSON *read_depth(const char *dir) {
    char *path = nb_path_join(dir, NB_DEPTH_FILE), *text = NULL;
    if (nb_path_exists(path)) text = nb_file_read(path, LARGEST_FILE, NULL);
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    if (text && !json) nb_warn("%s is not JSON: its curve is not drawn", path);
    free(text);
    free(path);
    return json;
}

int nb_stress_report(const char *dir, const cJSON *stress, const struct nb_results *results) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)stress};
    struct nb_figures figures;
    struct nb_strbuf page = {0};
    cJSON *depth = read_depth(dir);
    char *path = nb_path_join(dir, NB_STRESS_PAGE);
    nb_stress_figures_init(&figures, stress, depth, results);
    int result = nb_figures_write(&figures, dir, NB_STRESS_PLOTS);
    add_top(&meta, stress, &page);
    add_grades_section(stress, &page);
    add_bugs_section(stress, &page);
    add_frontiers_section(stress, &page);
    add_worst_section(stress, &page);
    add_figures(&figures, dir, &page);
    add_replays_section(stress, &page);
    nb_strbuf_add(&page, "<p>The files beside this page: <a href=\"" NB_STRESS_FILE "\">" NB_STRESS_FILE
                         "</a>, <a href=\"" NB_STRESS_PLOTS "/\">" NB_STRESS_PLOTS "/</a>.</p>\n</body>\n</html>\n");
    if (nb_file_write(path, page.text, page.len) != 0) result = -1;
    nb_strbuf_release(&page);
    nb_figures_release(&figures);
    cJSON_Delete(depth);
    free(path);
    return result;
}

int nb_stress_report_read(const char *dir, const struct nb_results *results) {
    if (!nb_stress_exists(dir)) return 1;
    cJSON *stress = nb_stress_read(dir);
    if (!stress) return -1;
    int result = nb_stress_report(dir, stress, results);
    cJSON_Delete(stress);
    return result;
}
