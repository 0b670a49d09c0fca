// SPDX-License-Identifier: Apache-2.0
/* DIR/index.html: one static page that needs nothing else, no script, no network. */
#include "reports/run/html.h"

#include <stdbool.h>
#include <stdlib.h>

#include "reports/run/overheads.h"
#include "reports/run/report.h"
#include "reports/text/escape.h"
#include "reports/text/libraries.h"
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

/* A judgement of precision has a page of its own. */
static bool has_stress_page(const char *dir) {
    char *path = nb_path_join(dir, NB_STRESS_PAGE);
    const bool there = nb_path_exists(path);
    free(path);
    return there;
}

static void add_top(const struct nb_summary *summary, const struct nb_results *results, const char *dir,
                    struct nb_strbuf *out) {
    struct nb_strbuf text = {0};
    nb_strbuf_add(out, "<h1>normbench");
    nb_html_text(out, ": ", nb_meta_text(results, "config"), "");
    nb_strbuf_add(out, "</h1>\n");
    nb_meta_footer(results, &text);
    nb_html_text(out, "<p class=\"dim\">", text.text, "</p>\n");
    nb_strbuf_clear(&text);
    nb_summary_counts(summary, &text);
    nb_html_text(out, "<p>", text.text, ".</p>\n");
    nb_strbuf_clear(&text);
    nb_summary_noise(summary, results, &text);
    nb_html_text(out, "<p class=\"dim\">", text.text, "</p>\n");
    nb_strbuf_clear(&text);
    nb_libraries_print(results, &text);
    nb_overheads_print(results, &text);
    if (text.len) nb_html_text(out, "<pre class=\"dim\">", text.text, "</pre>\n");
    nb_strbuf_release(&text);
    nb_strbuf_add(out, "<nav>");
    if (summary->n_failures) nb_strbuf_add(out, "<a class=\"bad\" href=\"#failures\">failures</a>");
    nb_strbuf_add(out, "<a href=\"#results\">results</a><a href=\"#plots\">plots</a>");
    if (summary->n_skips) nb_strbuf_add(out, "<a href=\"#left-out\">left out</a>");
    if (has_stress_page(dir)) nb_strbuf_add(out, "<a href=\"" NB_STRESS_PAGE "\">precision</a>");
    nb_strbuf_add(out, "<a href=\"#machine\">machine</a><a href=\"#reproduce\">how to reproduce</a></nav>\n");
}

int nb_html_write(const struct nb_results *results, const char *dir) {
    struct nb_summary summary;
    struct nb_strbuf page = {0};
    char *path = nb_path_join(dir, "index.html");
    nb_summary_init(&summary, results);
    nb_html_head(nb_meta_text(results, "config"), &page);
    add_top(&summary, results, dir, &page);
    nb_html_failures(&summary, results, &page);
    nb_html_table(results, &page);
    nb_html_plots(results, dir, &page);
    nb_html_skips(&summary, &page);
    nb_html_machine(results, &page);
    nb_html_reproduce(results, &page);
    nb_strbuf_add(&page, "</body>\n</html>\n");
    int result = nb_file_write(path, page.text, page.len);
    nb_strbuf_release(&page);
    nb_summary_release(&summary);
    free(path);
    return result;
}
