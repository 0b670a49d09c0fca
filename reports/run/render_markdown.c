// SPDX-License-Identifier: Apache-2.0
/* GitHub-flavoured Markdown: a table for each group of cases, failures above them, for READMEs and CI summaries. */
#include <string.h>

#include "reports/run/report.h"
#include "reports/text/escape.h"
#include "reports/text/output.h"

/* Escaped text with something around it; nothing at all when it is empty. */
static void add_escaped(struct nb_strbuf *out, const char *before, const char *text, const char *after) {
    if (!text || !*text) return;
    nb_strbuf_add(out, before);
    nb_escape_markdown(out, text);
    nb_strbuf_add(out, after);
}

static void print_failures(const struct nb_summary *summary, const struct nb_results *results, struct nb_strbuf *out) {
    struct nb_strbuf reproducer released_by(nb_strbuf_release) = {0};
    if (summary->n_failures) nb_strbuf_add(out, "\n## Failures\n");
    for (size_t i = 0; i < summary->n_failures; i++) {
        const struct nb_record *r = &results->records[summary->failures[i]];
        nb_strbuf_clear(&reproducer);
        nb_failure_reproducer(r, &reproducer);
        nb_strbuf_addf(out, "\n- **%s** ", nb_status_name(r->status));
        add_escaped(out, "", r->key, "");
        add_escaped(out, "<br>", reproducer.text, "");
        nb_strbuf_add(out, "\n");
        if (!r->replay) continue;
        /* An indented block: a line of it can end no fence. */
        nb_strbuf_add(out, "\n      ");
        nb_escape_terminal(out, r->replay, true);
        nb_strbuf_add(out, "\n");
    }
}

static void print_row(const struct nb_view *view, const struct nb_section *section, const struct nb_record *r,
                      struct nb_strbuf *out) {
    struct nb_strbuf cell released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(out, "|");
    for (size_t c = 0; c < view->n_columns; c++) {
        if (section->hidden[c]) continue;
        nb_strbuf_clear(&cell);
        nb_column_print(&view->columns[c], r, false, &cell);
        nb_strbuf_add(out, " ");
        add_escaped(out, "", cell.text, " ");
        nb_strbuf_add(out, "|");
    }
    nb_strbuf_add(out, "\n");
}

static void print_section(const struct nb_view *view, const struct nb_section *section, struct nb_strbuf *out) {
    add_escaped(out, "\n### ", section->heading.text, "\n");
    nb_strbuf_add(out, "\n|");
    for (size_t c = 0; c < view->n_columns; c++)
        if (!section->hidden[c]) add_escaped(out, " ", view->columns[c].title, " |");
    nb_strbuf_add(out, "\n|");
    for (size_t c = 0; c < view->n_columns; c++)
        if (!section->hidden[c]) nb_strbuf_add(out, view->columns[c].right ? "---:|" : "---|");
    nb_strbuf_add(out, "\n");
    for (size_t i = 0; i < section->n; i++) print_row(view, section, &view->results->records[section->records[i]], out);
}

static void print_machines(char *lines, struct nb_strbuf *out) {
    nb_strbuf_add(out, *lines ? "\n" : "");
    for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) add_escaped(out, "- ", line, "\n");
}

static void print_skips(const struct nb_summary *summary, struct nb_strbuf *out) {
    if (!summary->n_skips) return;
    nb_strbuf_add(out, "\n## Left out\n\n| cells | reason |\n|---:|---|\n");
    for (size_t i = 0; i < summary->n_skips; i++) {
        nb_strbuf_addf(out, "| %zu ", summary->skips[i].n);
        add_escaped(out, "| ", summary->skips[i].text, " |\n");
    }
}

static int render(const struct nb_results *results, FILE *out) {
    struct nb_summary summary released_by(nb_summary_release);
    struct nb_view view released_by(nb_view_release);
    struct nb_strbuf text = {0};
    nb_summary_init(&summary, results);
    nb_view_init(&view, results, false);
    add_escaped(&text, "# normbench ", nb_meta_text(results, "config"), "\n\n");
    add_escaped(&text, "", summary.counts_text, ".\n");
    add_escaped(&text, "\n", summary.noise.text, "\n");
    if (*summary.libraries.text || *summary.overheads.text) {
        nb_strbuf_add(&text, "\n");
        nb_escape_markdown(&text, summary.libraries.text);
        nb_escape_markdown(&text, summary.overheads.text);
        nb_strbuf_add(&text, "\n");
    }
    add_escaped(&text, "\n", summary.footer.text, "\n");
    print_machines(summary.machines.text, &text);
    add_escaped(&text, "\nAll cases: ", view.constants.text, ".\n");
    print_failures(&summary, results, &text);
    for (size_t i = 0; i < view.n_sections; i++) print_section(&view, &view.sections[i], &text);
    print_skips(&summary, &text);
    return nb_output(&text, out);
}

const struct nb_renderer nb_renderer_markdown[] = {{"markdown", "tables for GitHub", render}, {0}};
