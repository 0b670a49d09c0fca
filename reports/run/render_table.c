// SPDX-License-Identifier: Apache-2.0
/* The table for a terminal: aligned, no wider than the screen, what is the same everywhere said once, and below it what a person
 * has to know: what failed and how to see it again, what was left out, how noisy it was, where the files lie. */
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "reports/text/escape.h"
#include "reports/text/output.h"
#include "src/core/axes.h"
#include "src/core/case.h"
#include "src/core/log.h"

enum { MAX_CELL = 48, MAX_FAILURES = 20, MAX_SKIPS = 12, ROWS_A_HEADER = 40, NARROWEST_CASE = 12 };

struct table {
    struct nb_view *view;
    size_t widths[NB_VIEW_COLUMNS]; /* in terminal cells */
    bool dropped[NB_VIEW_COLUMNS];  /* from some section, since the screen is too narrow */
    bool utf8, color;
    bool narrow;   /* kernel, width and what else makes a case stand in one column */
    size_t screen; /* cells of a line; 0: no limit */
    struct nb_strbuf out;
};

static const char RED[] = "\033[31m", BOLD[] = "\033[1m", DIM[] = "\033[2m", YELLOW[] = "\033[33m";

static void paint(struct table *t, const char *style) {
    if (t->color) nb_strbuf_add(&t->out, style);
}
static void unpaint(struct table *t) { paint(t, "\033[0m"); }

static char *axis_value(const struct table *t, const struct nb_section *section, size_t row, size_t column) {
    return nb_case_axis_text(&t->view->results->records[section->records[row]].c, t->view->columns[column].axis->name);
}

/* The value that most rows of the section have; owned, null where they have none. */
static char *usual_value(const struct table *t, const struct nb_section *section, size_t column) {
    char *usual = NULL;
    size_t most = 0;
    for (size_t i = 0; i < section->n; i++) {
        char *value = axis_value(t, section, i, column);
        size_t n = 0;
        for (size_t j = 0; j < section->n && *value; j++) {
            char *other freed = axis_value(t, section, j, column);
            n += strcmp(value, other) == 0;
        }
        if (n > most) {
            free(usual);
            usual = nb_strdup(value);
            most = n;
        }
        free(value);
    }
    return usual;
}

/* "rmsnorm_twopass 256 eps 1e-12 rsqrt_nr": of the columns of axes only what is not usual in the section. */
static void print_case(const struct table *t, const struct nb_section *section, const struct nb_record *r,
                       struct nb_strbuf *out) {
    nb_kernel_name(&r->c, out);
    for (size_t c = 0; c < t->view->n_columns; c++) {
        const struct nb_axis *axis = t->view->columns[c].axis;
        if (!axis || section->said[c]) continue;
        char *value freed = nb_case_axis_text(&r->c, axis->name);
        if (!*value || (section->usual[c] && strcmp(section->usual[c], value) == 0)) continue;
        nb_strbuf_addf(out, axis->choices || strcmp(axis->name, "width") == 0 ? " " : " %s ", axis->name);
        nb_strbuf_add(out, value);
    }
    if (r->status != NB_OK) nb_strbuf_addf(out, " %s", r->status < NB_N_STATUSES ? nb_status_name(r->status) : "?");
}

/* The case of a narrow table is never cut: it goes on in the next line. */
static void make_cell(const struct table *t, const struct nb_section *section, size_t column, const struct nb_record *r,
                      struct nb_strbuf *cell) {
    const struct nb_column *what = &t->view->columns[column];
    struct nb_strbuf raw released_by(nb_strbuf_release) = {0};
    if (t->narrow && column == 0)
        print_case(t, section, r, &raw);
    else
        nb_column_print(what, r, t->narrow, &raw);
    nb_strbuf_clear(cell);
    nb_escape_terminal(cell, raw.text ? raw.text : "", t->utf8);
    if (!t->narrow || column > 0) nb_utf8_cut(cell, MAX_CELL, t->utf8 ? "…" : "~");
}

static void measure_columns(struct table *t) {
    struct nb_strbuf cell released_by(nb_strbuf_release) = {0};
    for (size_t c = 0; c < t->view->n_columns; c++) {
        size_t widest = nb_utf8_cells(t->view->columns[c].title);
        t->widths[c] = 0;
        for (size_t s = 0; s < t->view->n_sections; s++)
            for (size_t i = 0; i < t->view->sections[s].n; i++) {
                const struct nb_section *section = &t->view->sections[s];
                make_cell(t, section, c, &t->view->results->records[section->records[i]], &cell);
                size_t cells = nb_utf8_cells(cell.text);
                if (cells > widest) widest = cells;
            }
        t->widths[c] = widest < MAX_CELL ? widest : MAX_CELL;
    }
}

static size_t line_width(const struct table *t, const struct nb_section *section) {
    size_t width = 0;
    for (size_t c = 0; c < t->view->n_columns; c++)
        if (!section->hidden[c]) width += t->widths[c] + 2;
    return width ? width - 2 : 0;
}

/* The least important column, of several the widest; n_columns: none can go. */
static size_t next_victim(const struct table *t, const struct nb_section *section) {
    size_t victim = t->view->n_columns;
    for (size_t c = 0; c < t->view->n_columns; c++) {
        const struct nb_column *column = &t->view->columns[c], *chosen = &t->view->columns[victim];
        if (section->hidden[c] || column->priority == NB_KEEP) continue;
        bool first = victim == t->view->n_columns;
        if (first || column->priority < chosen->priority ||
            (column->priority == chosen->priority && t->widths[c] > t->widths[victim]))
            victim = c;
    }
    return victim;
}

static void fit_section(struct table *t, struct nb_section *section) {
    while (t->screen && line_width(t, section) > t->screen) {
        size_t victim = next_victim(t, section);
        if (victim == t->view->n_columns) return;
        section->hidden[victim] = t->dropped[victim] = true;
    }
}

/* Is the screen too narrow for the columns that stay? */
static bool is_too_narrow(const struct table *t) {
    for (size_t s = 0; s < t->view->n_sections; s++) {
        struct nb_section stays = t->view->sections[s];
        for (size_t c = 0; c < t->view->n_columns; c++) stays.hidden[c] |= t->view->columns[c].priority != NB_KEEP;
        if (t->screen && line_width(t, &stays) > t->screen) return true;
    }
    return false;
}

/* Columns of axes and the status go into the first one; what most rows of a section have goes into its heading. */
static void narrow_section(struct table *t, struct nb_section *section) {
    for (size_t c = 0; c < t->view->n_columns; c++) {
        const struct nb_axis *axis = t->view->columns[c].axis;
        if (strcmp(t->view->columns[c].title, "status") == 0) section->hidden[c] = true;
        if (!axis) continue;
        section->said[c] = section->hidden[c];
        section->hidden[c] = true;
        if (section->said[c] || strcmp(axis->name, "width") == 0) continue;
        section->usual[c] = usual_value(t, section, c);
        if (section->usual[c]) nb_view_add_to_heading(axis, section->usual[c], &section->heading);
    }
}

static void fit(struct table *t) {
    t->narrow = is_too_narrow(t);
    for (size_t i = 0; i < t->view->n_sections && t->narrow; i++) narrow_section(t, &t->view->sections[i]);
    if (t->narrow) {
        t->view->columns[0].title = "case";
        measure_columns(t);
    }
    for (size_t i = 0; i < t->view->n_sections; i++) fit_section(t, &t->view->sections[i]);
    for (size_t i = 0; i < t->view->n_sections && t->narrow; i++) {
        const size_t width = line_width(t, &t->view->sections[i]), over = width > t->screen ? width - t->screen : 0;
        if (over && t->widths[0] > over + NARROWEST_CASE) t->widths[0] -= over;
    }
}

static void add_padded(struct table *t, size_t column, const char *text) {
    size_t cells = nb_utf8_cells(text), pad = t->widths[column] > cells ? t->widths[column] - cells : 0;
    bool right = t->view->columns[column].right;
    nb_strbuf_addf(&t->out, "%*s", right ? (int)pad : 0, "");
    nb_strbuf_addf(&t->out, "%s%*s  ", text, right ? 0 : (int)pad, "");
}

static void trim(struct nb_strbuf *out) {
    while (out->len && out->text[out->len - 1] == ' ') out->text[--out->len] = '\0';
}

static void print_titles(struct table *t, const struct nb_section *section) {
    paint(t, BOLD);
    for (size_t c = 0; c < t->view->n_columns; c++)
        if (!section->hidden[c]) add_padded(t, c, t->view->columns[c].title);
    trim(&t->out);
    unpaint(t);
    nb_strbuf_add(&t->out, "\n");
}

/* What of a case did not fit into its column. */
static void add_rest(struct table *t, const char *text) {
    for (size_t n; *(text += strspn(text, " ")); text += n) {
        n = nb_utf8_line(text, t->widths[0] - 2);
        nb_strbuf_addf(&t->out, "\n  %.*s", (int)n, text);
    }
}

static void print_row(struct table *t, const struct nb_section *section, const struct nb_record *r) {
    struct nb_strbuf cell released_by(nb_strbuf_release) = {0}, rest released_by(nb_strbuf_release) = {0};
    bool failed = nb_status_failed(r->status), doubtful = r->has_timing && (r->timing.noisy || r->timing.suspect);
    paint(t, failed ? RED : doubtful ? YELLOW : "");
    for (size_t c = 0; c < t->view->n_columns; c++) {
        if (section->hidden[c]) continue;
        make_cell(t, section, c, r, &cell);
        const size_t fits = c == 0 ? nb_utf8_line(cell.text, t->widths[0]) : cell.len;
        nb_strbuf_add(&rest, cell.text + fits);
        cell.text[fits] = '\0';
        add_padded(t, c, cell.text);
    }
    trim(&t->out);
    add_rest(t, rest.text ? rest.text : "");
    if (failed || doubtful) unpaint(t);
    nb_strbuf_add(&t->out, "\n");
}

static void print_wrapped(struct table *t, const char *text) { nb_screen_wrap(&t->out, text, t->screen, t->utf8); }

/* As it stands where it fits, else in several lines. */
static void print_fitting(struct table *t, const char *text) {
    struct nb_strbuf line released_by(nb_strbuf_release) = nb_strbuf_empty();
    nb_escape_terminal(&line, text, t->utf8);
    const size_t indent = strspn(text, " ");
    if (t->screen > indent && nb_utf8_cells(line.text) > t->screen) {
        nb_strbuf_addf(&t->out, "%*s", (int)indent, "");
        nb_screen_wrap(&t->out, text, t->screen - indent, t->utf8);
    } else {
        nb_strbuf_addf(&t->out, "%s\n", line.text);
    }
}

static void print_sections(struct table *t) {
    size_t since_titles = ROWS_A_HEADER;
    for (size_t s = 0; s < t->view->n_sections; s++) {
        const struct nb_section *section = &t->view->sections[s];
        char *heading freed = nb_textf("%s%s", t->utf8 ? "── " : "-- ", section->heading.text);
        nb_strbuf_add(&t->out, "\n");
        if (section->heading.len) {
            paint(t, BOLD);
            print_fitting(t, heading);
            unpaint(t);
        }
        bool same = s > 0 && memcmp(section->hidden, section[-1].hidden, sizeof section->hidden) == 0;
        if (since_titles >= ROWS_A_HEADER || !same) {
            print_titles(t, section);
            since_titles = 0;
        }
        for (size_t i = 0; i < section->n; i++) print_row(t, section, &t->view->results->records[section->records[i]]);
        since_titles += section->n;
    }
}

static void print_failure(struct table *t, const struct nb_record *r) {
    struct nb_strbuf line released_by(nb_strbuf_release) = {0};
    char *head freed = nb_textf("%s: %s", nb_status_name(r->status), r->key ? r->key : "?");
    paint(t, RED);
    print_wrapped(t, head);
    unpaint(t);
    nb_failure_reproducer(r, &line);
    if (line.len) {
        nb_strbuf_add(&t->out, "  ");
        print_wrapped(t, line.text);
    }
    if (r->replay) { /* never wrapped: it is there to be copied */
        paint(t, DIM);
        nb_strbuf_add(&t->out, "  ");
        nb_escape_terminal(&t->out, r->replay, t->utf8);
        unpaint(t);
        nb_strbuf_add(&t->out, "\n");
    }
}

static void print_failures(struct table *t, const struct nb_summary *summary) {
    if (!summary->n_failures) return;
    paint(t, BOLD);
    nb_strbuf_addf(&t->out, "\n%zu failed\n", summary->n_failures);
    unpaint(t);
    for (size_t i = 0; i < summary->n_failures && i < MAX_FAILURES; i++)
        print_failure(t, &t->view->results->records[summary->failures[i]]);
    if (summary->n_failures > MAX_FAILURES)
        nb_strbuf_addf(&t->out, "... and %zu more: --format=csv has them all.\n", summary->n_failures - MAX_FAILURES);
}

static void print_skips(struct table *t, const struct nb_summary *summary) {
    if (summary->n_skips) nb_strbuf_addf(&t->out, "\n%zu cells left out\n", summary->n_skipped_cells);
    for (size_t i = 0; i < summary->n_skips && i < MAX_SKIPS; i++) {
        char *line freed = nb_textf("%7zu  %s", summary->skips[i].n, summary->skips[i].text);
        print_fitting(t, line);
    }
    if (summary->n_skips > MAX_SKIPS)
        nb_strbuf_addf(&t->out, "         ... and %zu more reasons\n", summary->n_skips - MAX_SKIPS);
}

static void print_hidden(struct table *t) {
    struct nb_strbuf line released_by(nb_strbuf_release) = {0};
    for (size_t c = 0; c < t->view->n_columns; c++)
        if (t->dropped[c])
            nb_strbuf_addf(&line, "%s%s", line.len ? ", " : "Too narrow for: ", t->view->columns[c].title);
    if (!line.len) return;
    nb_strbuf_add(&line, ". A wider terminal or --format=csv shows them.");
    nb_strbuf_add(&t->out, "\n");
    print_wrapped(t, line.text);
}

/* Lines of foreign text, each of them escaped. */
static void print_lines(struct table *t, const char *text) {
    struct nb_strbuf line released_by(nb_strbuf_release) = {0};
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        nb_strbuf_clear(&line);
        nb_strbuf_addn(&line, text, (size_t)(end - text));
        print_fitting(t, line.text ? line.text : "");
    }
}

static void print_end(struct table *t, const struct nb_summary *summary) {
    const struct nb_results *results = t->view->results;
    nb_strbuf_addf(&t->out, "\n%s\n", summary->counts_text);
    print_lines(t, summary->noise.text);
    print_lines(t, summary->libraries.text);
    print_lines(t, summary->overheads.text);
    if (!results->dir) return;
    char *text freed = nb_textf("Results: %s (results.json, index.html, plots/)", results->dir);
    print_fitting(t, text);
}

static int render(const struct nb_results *results, FILE *out) {
    struct nb_summary summary released_by(nb_summary_release);
    struct nb_view view released_by(nb_view_release);
    nb_summary_init(&summary, results);
    nb_view_init(&view, results, false);
    struct table t = {
        .view = &view, .utf8 = nb_utf8_wanted(), .color = nb_screen_color(out), .screen = nb_screen_width(out)};
    measure_columns(&t);
    fit(&t);
    if (*summary.footer.text) print_wrapped(&t, summary.footer.text);
    print_lines(&t, summary.machines.text);
    char *head freed = nb_textf("All cases: %s", view.constants.text);
    if (view.constants.len) print_wrapped(&t, head);
    print_sections(&t);
    print_failures(&t, &summary);
    print_skips(&t, &summary);
    print_hidden(&t);
    print_end(&t, &summary);
    return nb_output(&t.out, out);
}

const struct nb_renderer nb_renderer_table[] = {{"table", "for the terminal", render}, {0}};
