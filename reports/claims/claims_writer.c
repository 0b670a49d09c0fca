// SPDX-License-Identifier: Apache-2.0
/* The pieces of claims.md and claims.html: text, paragraph, heading, grid, each in both forms. */
#include <stdbool.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "reports/run/report.h"
#include "reports/text/escape.h"
#include "src/core/log.h"

void nb_claims_add(const struct nb_claims_page *p, const char *markdown, const char *html) {
    nb_strbuf_add(p->out, p->html ? html : markdown);
}

void nb_claims_text(const struct nb_claims_page *p, const char *text) {
    if (p->html)
        nb_escape_html(p->out, text);
    else
        nb_escape_markdown(p->out, text);
}

void nb_claims_say(const struct nb_claims_page *p, const char *lead, const char *text) {
    if (!*text) return;
    nb_claims_add(p, "", "<p>");
    nb_strbuf_add(p->out, lead);
    nb_claims_text(p, text);
    nb_claims_add(p, "\n\n", "</p>\n");
}

void nb_claims_item(const struct nb_claims_page *p, const char *text) {
    if (!*text) return;
    nb_claims_add(p, "- ", "<li>");
    nb_claims_text(p, text);
    nb_claims_add(p, "\n", "</li>\n");
}

void nb_claims_heading(const struct nb_claims_page *p, int level, const char *id, const char *title) {
    if (p->html)
        nb_strbuf_addf(p->out, *id ? "<h%d id=\"%s\">%s</h%d>\n" : "<h%d%s>%s</h%d>\n", level, id, title, level);
    else
        nb_strbuf_addf(p->out, "\n%.*s %s\n\n", level, "####", title);
}

static bool is_empty_column(const struct nb_grid *grid, size_t column) {
    for (size_t c = column; c < grid->n_cells; c += grid->n_columns)
        if (*grid->cells[c]) return false;
    return true;
}

/* What page.css and page.js do with a column. */
static const char *class_of(const char *title, const char *text) {
    static const char *const classes[][2] = {{"claim", "k"},
                                             {"where", "k w"},
                                             {"statement", "w"},
                                             {"measured", "w"},
                                             {"why", "w"},
                                             {"kernels that it breaks", "w"},
                                             {"evidence", "w"},
                                             {"published", "n m"},
                                             {"step in PyTorch, GPU", "d"},
                                             {"step in PyTorch, here", "d"},
                                             {"d that reaches it", "d"}};
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (strcmp(title, classes[i][0]) == 0) return classes[i][1];
    if (strcmp(title, "verdict") != 0) return "";
    if (strcmp(text, nb_claim_verdict_names[NB_REPRODUCED]) == 0) return "g gA";
    if (strcmp(text, nb_claim_verdict_names[NB_NOT_REPRODUCED]) == 0) return "g gF";
    return nb_claim_is_decided(text) ? "g gC" : "g";
}

/* Figures of one cell, "1.6% [0.6, 2.5]; nn -1.0% [-2.0, 0.1]", each whole in a line. */
static void add_figures_cell(struct nb_strbuf *out, const char *class, const char *text) {
    struct nb_strbuf whole released_by(nb_strbuf_release) = nb_strbuf_empty();
    for (const char *p = text; *p; p++)
        nb_strbuf_addn(&whole, *p == ' ' && p[-1] != ';' ? "\u00a0" : p, *p == ' ' && p[-1] != ';' ? 2 : 1);
    nb_html_cell(out, class, whole.text);
}

/* Without the columns that nothing was measured for; a claim's name leads to its evidence. */
static void add_html_grid(const struct nb_grid *grid, struct nb_strbuf *out) {
    const bool folds = strcmp(grid->titles[0], "claim") == 0 || strcmp(grid->titles[0], "where") == 0;
    nb_strbuf_addf(out, "<div class=wrap><table%s>\n<tr>", folds ? " class=rows" : "");
    for (size_t c = 0; c < grid->n_columns; c++)
        if (!is_empty_column(grid, c)) {
            nb_strbuf_addf(out, "<th class=\"%s\">", class_of(grid->titles[c], ""));
            nb_escape_html(out, grid->titles[c]);
        }
    for (size_t c = 0; c < grid->n_cells; c++) {
        const char *title = grid->titles[c % grid->n_columns], *text = grid->cells[c];
        const bool leads = strcmp(title, "claim") == 0 && strncmp(text, "... ", 4) != 0;
        if (c % grid->n_columns == 0) nb_strbuf_add(out, "\n<tr>");
        if (is_empty_column(grid, c % grid->n_columns)) continue;
        const char *class = class_of(title, text);
        (strcmp(class, "d") == 0 ? add_figures_cell : nb_html_cell)(out, class, leads ? "" : text);
        nb_html_text(out, "<a href=\"#", leads ? text : "", "\">");
        nb_html_text(out, "", leads ? text : "", "</a>");
    }
    nb_strbuf_add(out, "\n</table></div>\n");
}

void nb_claims_grid(const struct nb_claims_page *p, const struct nb_grid *grid) {
    if (p->html)
        add_html_grid(grid, p->out);
    else
        nb_grid_add_markdown(grid, false, p->out);
}
