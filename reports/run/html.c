// SPDX-License-Identifier: Apache-2.0
/* DIR/index.html: one static page that needs nothing else, no script, no network. */
#include "reports/run/report.h"

#include <stdlib.h>
#include <string.h>

#include "reports/run/summary.h"
#include "reports/run/view.h"
#include "reports/text/escape.h"
#include "reports/text/format.h"
#include "src/core/files.h"
#include "src/lab/stress/stress.h"

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#59636e;--line:#d8dee4;--card:#f6f8fa;--bad:#b3261e;"
    "--doubt:#8a5a00;--link:#0b57d0}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#15181c;--fg:#e3e7eb;--dim:#9aa4af;--line:#343b43;--card:#1e2329;"
    "--bad:#ff8a80;--doubt:#ffc266;--link:#8ab4f8}}\n"
    "*{box-sizing:border-box}body{margin:0 auto;max-width:96rem;padding:1rem 1.25rem 4rem;background:var(--bg);"
    "color:var(--fg);font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}\n"
    "h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--line)}"
    "h3{font-size:1rem;margin:1.4rem 0 .3rem}a{color:var(--link)}nav a{margin-right:1rem}\n"
    "p.dim,figcaption,.dim{color:var(--dim)}code,pre,td.n,td.k{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,"
    "monospace;font-size:.86em}pre{background:var(--card);padding:.6rem;overflow-x:auto;border-radius:6px}\n"
    ".wrap{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem}th,td{padding:.18rem .6rem;text-align:left;"
    "border-bottom:1px solid var(--line);white-space:nowrap;vertical-align:top}td.n,th.n{text-align:right}"
    "td.w{white-space:normal;overflow-wrap:anywhere;min-width:16rem}th{background:var(--card)}\n"
    "tr.bad td{color:var(--bad)}tr.doubt td{color:var(--doubt)}.bad{color:var(--bad);font-weight:600}"
    "details{margin:.4rem 0}summary{cursor:pointer;font-weight:600;padding:.2rem 0}td details{margin:0}td summary{"
    "font-weight:400;padding:0}\n"
    "figure{margin:1.2rem 0;padding:.8rem;border:1px solid var(--line);border-radius:8px;background:var(--card)}"
    "figure img{max-width:100%;height:auto;background:#fff;border-radius:4px;display:block}"
    "figcaption{font-size:.88rem;margin-top:.5rem;max-width:62rem}"
    ".g{font-weight:700;text-align:center;min-width:2.2rem}.gA{background:#cfeed6;color:#0b4a1c}.gB{background:#e4f2cf;"
    "color:#36480c}.gC{background:#fdf0c2;color:#5a4300}.gD{background:#fddcc0;color:#6b2d00}.gF{background:#f8c4c0;"
    "color:#6e0d08}tr.group td{font-weight:600;background:var(--card)}\n"
    "article{border-left:4px solid var(--bad);padding:.1rem .9rem;margin:1rem 0;overflow-wrap:anywhere}\n";

void nb_html_text(struct nb_strbuf *out, const char *before, const char *text, const char *after) {
    if (!text || !*text) return;
    nb_strbuf_add(out, before);
    nb_escape_html(out, text);
    nb_strbuf_add(out, after);
}

void nb_html_head(const char *title, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
                       "style-src 'unsafe-inline'\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>normbench");
    nb_html_text(out, " ", title, "");
    nb_strbuf_add(out, "</title>\n<style>\n");
    nb_strbuf_add(out, style);
    nb_strbuf_add(out, "</style>\n</head>\n<body>\n");
}

/* ---- pictures: an SVG inside an <img> runs no script and shares no ids with the page, which inline SVG would ---- */

enum { LARGEST_PICTURE = 16 << 20 };

static void add_base64(struct nb_strbuf *out, const unsigned char *data, size_t len) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        unsigned word =
            (unsigned)data[i] << 16 | (left > 1 ? (unsigned)data[i + 1] << 8 : 0) | (left > 2 ? data[i + 2] : 0);
        const char four[4] = {digits[word >> 18], digits[word >> 12 & 63], left > 1 ? digits[word >> 6 & 63] : '=',
                              left > 2 ? digits[word & 63] : '='};
        nb_strbuf_addn(out, four, 4);
    }
}

/* Where gnuplot was missing there is no picture; data and script are linked all the same. */
static bool add_picture(const struct nb_figure *f, const char *dir, const char *folder, struct nb_strbuf *out) {
    struct nb_strbuf path = {0};
    const bool cells = nb_heat_is_in(f); /* thousands of boxes are smaller as pixels */
    size_t len = 0;
    nb_strbuf_addf(&path, "%s/%s/%s.%s", dir, folder, f->name, cells ? "png" : "svg");
    char *picture = nb_path_exists(path.text) ? nb_file_read(path.text, LARGEST_PICTURE, &len) : NULL;
    nb_strbuf_release(&path);
    if (!picture) return false;
    nb_html_text(out, "<img alt=\"", f->title, "\" src=\"data:image/");
    nb_strbuf_add(out, cells ? "png;base64," : "svg+xml;base64,");
    add_base64(out, (const unsigned char *)picture, len);
    nb_strbuf_add(out, "\">\n");
    free(picture);
    return true;
}

static void add_figure(const struct nb_figure *f, const char *dir, const char *folder, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<figure>\n");
    if (!add_picture(f, dir, folder, out)) nb_html_text(out, "<p><b>", f->title, "</b> (not drawn: no gnuplot)</p>\n");
    nb_html_text(out, "<figcaption>", f->caption, "");
    nb_strbuf_addf(out, "<br><a href=\"%s/%s.dat\">data</a> <a href=\"%s/%s.gp\">script</a></figcaption>\n</figure>\n",
                   folder, f->name, folder, f->name);
}

void nb_html_figures(const struct nb_figures *figures, const char *prefix, const char *dir, const char *folder,
                     struct nb_strbuf *out) {
    for (size_t i = 0; i < figures->n; i++)
        if (strncmp(figures->list[i].name, prefix, strlen(prefix)) == 0)
            add_figure(&figures->list[i], dir, folder, out);
}

void nb_html_not_drawn(struct nb_figures *figures, struct nb_strbuf *out) {
    if (!figures->notes.len) return;
    nb_strbuf_add(out, "<details><summary>Not drawn</summary>\n<ul>\n");
    for (char *rest = NULL, *line = strtok_r(figures->notes.text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest))
        nb_html_text(out, "<li>", line, "</li>\n");
    nb_strbuf_add(out, "</ul></details>\n");
}

static void add_plots(const struct nb_results *results, const char *dir, struct nb_strbuf *out) {
    struct nb_figures figures;
    nb_figures_init(&figures, results);
    nb_strbuf_add(out, "<h2 id=\"plots\">Plots</h2>\n");
    if (!figures.n) nb_strbuf_add(out, "<p>These results allow no plot.</p>\n");
    nb_html_figures(&figures, "", dir, "plots", out);
    nb_html_not_drawn(&figures, out);
    nb_figures_release(&figures);
}

/* ---- what ran ---- */

/* A judgement of precision has a page of its own. */
static bool has_stress_page(const char *dir) {
    char *path = nb_path_join(dir, NB_STRESS_PAGE);
    const bool there = nb_path_exists(path);
    free(path);
    return there;
}

static void add_top(const struct nb_summary *summary, const struct nb_results *results, const char *dir,
                    struct nb_strbuf *out) {
    nb_strbuf_add(out, "<h1>normbench");
    nb_html_text(out, ": ", nb_meta_text(results, "config"), "");
    nb_strbuf_add(out, "</h1>\n");
    nb_html_text(out, "<p class=\"dim\">", summary->footer, "</p>\n");
    nb_html_text(out, "<p>", summary->counts_text, ".</p>\n");
    nb_html_text(out, "<p class=\"dim\">", summary->noise, "</p>\n");
    if (*summary->libraries || *summary->overheads) {
        nb_strbuf_add(out, "<pre class=\"dim\">");
        nb_html_text(out, "", summary->libraries, "");
        nb_html_text(out, "", summary->overheads, "");
        nb_strbuf_add(out, "</pre>\n");
    }
    nb_strbuf_add(out, "<nav>");
    if (summary->n_failures) nb_strbuf_add(out, "<a class=\"bad\" href=\"#failures\">failures</a>");
    nb_strbuf_add(out, "<a href=\"#results\">results</a><a href=\"#plots\">plots</a>");
    if (summary->n_skips) nb_strbuf_add(out, "<a href=\"#left-out\">left out</a>");
    if (has_stress_page(dir)) nb_strbuf_add(out, "<a href=\"" NB_STRESS_PAGE "\">precision</a>");
    nb_strbuf_add(out, "<a href=\"#machine\">machine</a><a href=\"#reproduce\">how to reproduce</a></nav>\n");
}

static void add_failures(const struct nb_summary *summary, const struct nb_results *results, struct nb_strbuf *out) {
    struct nb_strbuf witness = {0};
    if (summary->n_failures) nb_strbuf_addf(out, "<h2 id=\"failures\">Failures: %zu</h2>\n", summary->n_failures);
    for (size_t i = 0; i < summary->n_failures; i++) {
        const struct nb_record *r = &results->records[summary->failures[i]];
        nb_strbuf_clear(&witness);
        nb_failure_witness(r, &witness);
        nb_strbuf_addf(out, "<article><p><span class=\"bad\">%s</span> ", nb_status_name(r->status));
        nb_html_text(out, "<code>", r->key, "</code>");
        nb_html_text(out, "<br>", witness.text, "");
        nb_strbuf_add(out, "</p>\n");
        nb_html_text(out, "<pre>", r->replay, "</pre>\n");
        nb_strbuf_add(out, "</article>\n");
    }
    nb_strbuf_release(&witness);
}

/* Notes may be long sentences, kernels' names never break, figures stand right. */
static const char *cell_class(const struct nb_view *view, size_t column) {
    if (view->columns[column].right) return "n";
    return column == 0 ? "k" : column + 1 == view->n_columns ? "w" : "t";
}

static void add_row(const struct nb_view *view, const struct nb_section *section, const struct nb_record *r,
                    struct nb_strbuf *out) {
    struct nb_strbuf cell = {0};
    bool doubtful = r->has_timing && (r->timing.noisy || r->timing.suspect);
    nb_strbuf_add(out, r->status < NB_N_STATUSES && nb_status_failed(r->status) ? "<tr class=\"bad\">"
                       : doubtful                                               ? "<tr class=\"doubt\">"
                                                                                : "<tr>");
    for (size_t c = 0; c < view->n_columns; c++) {
        if (section->hidden[c]) continue;
        nb_strbuf_clear(&cell);
        nb_column_print(&view->columns[c], r, true, false, &cell);
        nb_strbuf_addf(out, "<td class=\"%s\">", cell_class(view, c));
        nb_html_text(out, "", cell.text, "");
        nb_strbuf_add(out, "</td>");
    }
    nb_strbuf_add(out, "</tr>\n");
    nb_strbuf_release(&cell);
}

static void add_section(const struct nb_view *view, const struct nb_section *section, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<details open><summary>");
    nb_html_text(out, "", *section->heading ? section->heading : "all cases", "");
    nb_strbuf_add(out, "</summary>\n<div class=\"wrap\"><table>\n<tr>");
    for (size_t c = 0; c < view->n_columns; c++) {
        if (section->hidden[c]) continue;
        nb_strbuf_add(out, view->columns[c].right ? "<th class=\"n\">" : "<th>");
        nb_html_text(out, "", view->columns[c].title, "</th>");
    }
    nb_strbuf_add(out, "</tr>\n");
    for (size_t i = 0; i < section->n; i++) add_row(view, section, &view->results->records[section->records[i]], out);
    nb_strbuf_add(out, "</table></div></details>\n");
}

static void add_table(const struct nb_results *results, struct nb_strbuf *out) {
    struct nb_view view;
    nb_view_init(&view, results);
    nb_strbuf_add(out, "<h2 id=\"results\">Results</h2>\n");
    nb_html_text(out, "<p class=\"dim\">All cases: ", view.constants, ".</p>\n");
    if (view.n_sections)
        nb_strbuf_add(out,
                      "<p class=\"dim\">Time: median over launches, with half of its 95% interval. Roof: time of the "
                      "copy, which moves the same bytes and computes nothing, over the time of the case. Attained: the "
                      "larger of the copy's time and of what the arithmetic takes at the "
                      "measured throughput of the core, over the time of the case, and which of them bounds it. "
                      "Of bound: largest error over what the declared formula allows; above 1 fails.</p>\n");
    else
        nb_strbuf_add(out, "<p>No case ran.</p>\n");
    for (size_t i = 0; i < view.n_sections; i++) add_section(&view, &view.sections[i], out);
    nb_view_release(&view);
}

static void add_skips(const struct nb_summary *summary, struct nb_strbuf *out) {
    if (!summary->n_skips) return;
    nb_strbuf_addf(out, "<h2 id=\"left-out\">Left out: %zu cells</h2>\n<div class=\"wrap\"><table>\n",
                   summary->n_skipped_cells);
    nb_strbuf_add(out, "<tr><th class=\"n\">cells</th><th>reason</th></tr>\n");
    for (size_t i = 0; i < summary->n_skips; i++) {
        nb_strbuf_addf(out, "<tr><td class=\"n\">%zu</td><td class=\"w\">", summary->skips[i].n);
        nb_html_text(out, "", summary->skips[i].text, "");
        nb_strbuf_add(out, "</td></tr>\n");
    }
    nb_strbuf_add(out, "</table></div>\n");
}

/* ---- the machine and the build, and the lines that measure the same again ---- */

enum { DEEPEST = 8 };

static void value_of(const cJSON *item, struct nb_strbuf *out) {
    if (cJSON_IsString(item))
        nb_strbuf_add(out, item->valuestring);
    else if (cJSON_IsNumber(item))
        nb_format_exact(out, item->valuedouble);
    else if (cJSON_IsBool(item))
        nb_strbuf_add(out, cJSON_IsTrue(item) ? "yes" : "no");
    else
        nb_strbuf_add(out, "");
}

static bool is_plain(const cJSON *item) { return !cJSON_IsObject(item) && !cJSON_IsArray(item); }

/* One row a value; "cpu.model" is its path. Plain lists stand in one cell. */
static void add_tree(const cJSON *item, const char *path, int depth, struct nb_strbuf *out) {
    struct nb_strbuf value = {0}, inner = {0};
    const cJSON *child;
    bool list = cJSON_IsArray(item) && (!item->child || is_plain(item->child));
    cJSON_ArrayForEach(child, item) {
        if (depth >= DEEPEST) break;
        if (list) {
            nb_strbuf_add(&value, value.len ? ", " : "");
            value_of(child, &value);
            continue;
        }
        nb_strbuf_clear(&inner);
        nb_strbuf_addf(&inner, "%s%s%s", path, *path ? "." : "", child->string ? child->string : "");
        add_tree(child, inner.text, depth + 1, out);
    }
    if (is_plain(item)) value_of(item, &value);
    if (value.len) {
        nb_html_text(out, "<tr><td>", *path ? path : "-", "</td>");
        nb_html_text(out, "<td class=\"w\">", value.text, "</td></tr>\n");
    }
    nb_strbuf_release(&value);
    nb_strbuf_release(&inner);
}

static void add_fingerprint(const cJSON *fingerprint, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<div class=\"wrap\"><table>\n");
    add_tree(fingerprint, "", 0, out);
    nb_strbuf_add(out, "</table></div>\n");
}

static void add_machine(const struct nb_results *results, struct nb_strbuf *out) {
    const cJSON *machines = nb_meta(results, "machines"), *own = nb_meta(results, "fingerprint"), *machine;
    int i = 0;
    nb_strbuf_add(out, "<h2 id=\"machine\">Machine and build</h2>\n");
    if (cJSON_GetArraySize(machines) > 1) {
        cJSON_ArrayForEach(machine, machines) {
            nb_strbuf_addf(out, "<details><summary>machine %d</summary>\n", i++);
            add_fingerprint(cJSON_GetObjectItemCaseSensitive(machine, "fingerprint"), out);
            nb_strbuf_add(out, "</details>\n");
        }
    } else if (own) {
        add_fingerprint(own, out);
    } else {
        nb_strbuf_add(out, "<p>These results say nothing about their machine.</p>\n");
    }
}

static void add_reproduce(const struct nb_results *results, struct nb_strbuf *out) {
    struct nb_strbuf command = {0};
    const cJSON *word;
    cJSON_ArrayForEach(word, nb_meta(results, "argv")) {
        if (cJSON_IsString(word)) nb_add_shell_word(&command, SIZE_MAX, word->valuestring);
    }
    nb_strbuf_add(out, "<h2 id=\"reproduce\">How to reproduce</h2>\n");
    nb_html_text(out, "<p>These results came from</p>\n<pre>", command.text, "</pre>\n");
    nb_html_text(out, "<p>plan ", nb_meta_text(results, "plan.hash"), ", ");
    nb_html_text(out, "order seed ", nb_meta_text(results, "plan.order_seed"), ".</p>\n");
    nb_strbuf_add(out, "<p>One case alone, checked and timed again:</p>\n<pre>normbench replay DIR CASE-KEY</pre>\n"
                       "<p>This page, the plots and the table again:</p>\n<pre>normbench report DIR</pre>\n"
                       "<p>The files beside this page: <a href=\"results.json\">results.json</a>, <a "
                       "href=\"plots/\">plots/</a>.</p>\n");
    nb_strbuf_release(&command);
}

int nb_html_write(const struct nb_results *results, const char *dir) {
    struct nb_summary summary;
    struct nb_strbuf page = {0};
    char *path = nb_path_join(dir, "index.html");
    nb_summary_init(&summary, results);
    nb_html_head(nb_meta_text(results, "config"), &page);
    add_top(&summary, results, dir, &page);
    add_failures(&summary, results, &page);
    add_table(results, &page);
    add_plots(results, dir, &page);
    add_skips(&summary, &page);
    add_machine(results, &page);
    add_reproduce(results, &page);
    nb_strbuf_add(&page, "</body>\n</html>\n");
    int result = nb_file_write(path, page.text, page.len);
    nb_strbuf_release(&page);
    nb_summary_release(&summary);
    free(path);
    return result;
}
