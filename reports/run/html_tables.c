// SPDX-License-Identifier: Apache-2.0
/* The page's failures, results and cells left out. */
#include "reports/run/html.h"
#include "reports/run/view.h"

void nb_html_failures(const struct nb_summary *summary, const struct nb_results *results, struct nb_strbuf *out) {
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
        nb_column_print(&view->columns[c], r, true, &cell);
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

void nb_html_table(const struct nb_results *results, struct nb_strbuf *out) {
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

void nb_html_skips(const struct nb_summary *summary, struct nb_strbuf *out) {
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
