// SPDX-License-Identifier: Apache-2.0
/* A gate for people: on a terminal, as a CI's job summary, and as a test suite. */
#include <math.h>
#include <string.h>

#include "reports/gate/gate_summary.h"
#include "reports/text/escape.h"
#include "reports/text/exports.h"
#include "reports/text/format.h"
#include "reports/text/grid.h"
#include "reports/text/output.h"

/* ---- cells of all three -------------------------------------------------------------------------------------- */

/* The columns of the table, of the terminal and of Markdown: short texts without escapes. */
enum gate_column {
    VERDICT,
    CASE,
    CHANGE,
    INTERVAL,
    SEEN_FROM,
    CONTROL,
    INSTRUCTIONS, /* exact counts, candidate against baseline */
    LAUNCHES,
    SECONDS,
    N_COLUMNS
};

static const char *const column_titles[N_COLUMNS] = {"verdict", "case",         "change",   "interval", "seen from",
                                                     "control", "instructions", "launches", "s"};
static const bool is_right[N_COLUMNS] = {false, false, true, true, true, true, true, true, true};

static void add_percent(struct nb_strbuf *out, const char *format, double ratio) {
    if (isfinite(ratio)) nb_strbuf_addf(out, format, 100 * (ratio - 1));
}

static void add_cell(const struct nb_gate_view *view, const struct nb_gate_case *c, enum gate_column column,
                     struct nb_strbuf *out) {
    const struct nb_gate_judgement *j = &c->judgement;
    nb_strbuf_add(out, "");
    if (column == VERDICT) nb_strbuf_add(out, nb_verdict_name(c->verdict));
    if (column == CASE) nb_key_parts_short(&view->summary.parts, c->key, out);
    if (column == SECONDS && c->seconds > 0) nb_strbuf_addf(out, "%.1f", c->seconds);
    if (column == INSTRUCTIONS)
        add_percent(out, "%+.2f %%", c->instructions[NB_BUILD_CANDIDATE] / c->instructions[NB_BUILD_BASELINE]);
    if (!nb_gate_judged(c)) return;
    if (column == CHANGE) add_percent(out, "%+.2f %%", j->ratio.value);
    if (column == INTERVAL && nb_interval_known(&j->ratio))
        nb_strbuf_addf(out, "[%+.2f, %+.2f]", 100 * (j->ratio.low - 1), 100 * (j->ratio.high - 1));
    if (column == SEEN_FROM) add_percent(out, "%.1f %%", 1 + j->smallest_effect);
    if (column == CONTROL) add_percent(out, "%+.2f %%", j->control.value);
    if (column == LAUNCHES) nb_strbuf_addf(out, "%zu", c->n_screen + c->n_confirm);
}

/* Has any case a text in this column? */
static bool has_column(const struct nb_gate_view *view, enum gate_column column) {
    struct nb_strbuf cell = {0};
    for (size_t i = 0; i < view->g->n_cases && !cell.len; i++) add_cell(view, &view->g->cases[i], column, &cell);
    const bool has = cell.len > 0;
    nb_strbuf_release(&cell);
    return has;
}

/* ---- the table ---------------------------------------------------------------------------------------------------------- */

static enum nb_grid_style style_of(enum nb_verdict v) {
    if (v >= NB_VERDICT_REGRESSION) return NB_GRID_BAD;
    if (v >= NB_VERDICT_INCONCLUSIVE) return NB_GRID_DOUBTFUL;
    return v == NB_VERDICT_IMPROVED ? NB_GRID_GOOD : NB_GRID_PLAIN;
}

static void add_cases(const struct nb_gate_view *view, size_t screen, bool color, struct nb_strbuf *out) {
    static const int ranks[N_COLUMNS] = {NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, 6, 5, 4, 3, 1, 2};
    const char *titles[N_COLUMNS];
    bool right[N_COLUMNS];
    int kept_ranks[N_COLUMNS];
    enum gate_column columns[N_COLUMNS];
    struct nb_strbuf cell = {0};
    struct nb_grid grid;
    size_t n = 0;
    for (int c = 0; c < N_COLUMNS; c++) {
        if (!has_column(view, (enum gate_column)c)) continue;
        titles[n] = column_titles[c];
        right[n] = is_right[c];
        kept_ranks[n] = ranks[c];
        columns[n++] = (enum gate_column)c;
    }
    if (n == 0) return;
    nb_grid_init(&grid, titles, n);
    grid.right = right;
    grid.ranks = kept_ranks;
    grid.screen = screen;
    for (size_t i = 0; i < view->g->n_cases; i++) {
        const struct nb_gate_case *c = &view->g->cases[view->summary.order[i]];
        nb_grid_style(&grid, style_of(c->verdict));
        for (size_t k = 0; k < n; k++) {
            nb_strbuf_clear(&cell);
            add_cell(view, c, columns[k], &cell);
            nb_grid_add(&grid, cell.text);
        }
    }
    nb_grid_add_table(&grid, color, out);
    nb_grid_release(&grid);
    nb_strbuf_release(&cell);
}

/* ---- what is the matter ------------------------------------------------------------------------------------------------- */

static void add_open(const struct nb_gate_view *view, enum nb_verdict v, size_t screen, struct nb_strbuf *out) {
    enum { MOST = 20 };
    const bool utf8 = nb_utf8_wanted();
    struct nb_strbuf line = {0};
    size_t n = 0;
    for (size_t i = 0; i < view->g->n_cases; i++) {
        const struct nb_gate_case *c = &view->g->cases[view->summary.order[i]];
        if (c->verdict != v || ++n > MOST) continue;
        nb_strbuf_clear(&line);
        nb_strbuf_addf(&line, "%s ", nb_verdict_name(v));
        nb_key_parts_short(&view->summary.parts, c->key, &line);
        nb_strbuf_addf(&line, ": %s", c->reason);
        nb_screen_wrap(out, line.text, screen, utf8);
    }
    if (n > MOST) nb_strbuf_addf(out, "... and %zu more\n", n - MOST);
    nb_strbuf_release(&line);
    if (n == 0) return;
    nb_strbuf_add(out, "  ");
    nb_screen_wrap(out, nb_gate_advice(v), screen ? screen - 2 : 0, utf8);
    nb_strbuf_add(out, "\n");
}

static void say(void (*sentence)(const struct nb_gate_summary *s, struct nb_strbuf *text),
                const struct nb_gate_view *view, size_t screen, struct nb_strbuf *out) {
    struct nb_strbuf text = {0};
    sentence(&view->summary, &text);
    if (text.len) nb_screen_wrap(out, text.text, screen, nb_utf8_wanted());
    nb_strbuf_release(&text);
}

void nb_gate_add_table(const struct nb_gate_view *view, size_t screen, bool color, struct nb_strbuf *out) {
    struct nb_strbuf text = {0};
    const bool utf8 = nb_utf8_wanted();
    nb_say_machine(view->fingerprint, &text);
    if (text.len) nb_screen_wrap(out, text.text, screen, utf8);
    nb_strbuf_clear(&text);
    nb_strbuf_add(&text, "All cases: ");
    const size_t before = text.len;
    nb_key_parts_common(&view->summary.parts, &text);
    if (text.len > before) nb_screen_wrap(out, text.text, screen, utf8);
    nb_strbuf_release(&text);
    nb_strbuf_add(out, "\n");
    add_cases(view, screen, color, out);
    nb_strbuf_add(out, "\n");
    for (int v = NB_N_VERDICTS - 1; v >= NB_GATE_FIRST_OPEN; v--) add_open(view, (enum nb_verdict)v, screen, out);
    say(nb_gate_say_counts, view, screen, out);
    say(nb_gate_say_mean, view, screen, out);
    say(nb_gate_say_leaning, view, screen, out);
    say(nb_gate_say_layouts, view, screen, out);
}

/* ---- Markdown -------------------------------------------------------------------------------------------------------- */

/* The gate as a CI's job summary ($GITHUB_STEP_SUMMARY): the verdict first, then what to do about it, then the figures; cases that
 * passed are folded away. GitHub takes at most 1 MiB of a step. */

enum { MOST_OPEN = 500, MOST_PASSED = 1000 };

static bool is_open(const struct nb_gate_case *c) { return c->verdict >= NB_GATE_FIRST_OPEN; }

static void add_headline(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    const enum nb_verdict v = s->verdict;
    const char *word = v == NB_VERDICT_NONE                                    ? "nothing was compared"
                       : v == NB_VERDICT_IDENTICAL || v == NB_VERDICT_IMPROVED ? "PASS"
                                                                               : nb_verdict_name(v);
    nb_strbuf_addf(out, "## normbench gate: %s\n\n", word);
}

static void add_sentence(const struct nb_gate_view *view, struct nb_strbuf *out,
                         void (*sentence)(const struct nb_gate_summary *s, struct nb_strbuf *text)) {
    struct nb_strbuf text = {0};
    sentence(&view->summary, &text);
    if (text.len) {
        nb_escape_markdown(out, text.text);
        nb_strbuf_add(out, "\n\n");
    }
    nb_strbuf_release(&text);
}

static void add_advice(const struct nb_gate_view *view, struct nb_strbuf *out) {
    bool any = false;
    for (int v = NB_N_VERDICTS - 1; v >= NB_GATE_FIRST_OPEN; v--) {
        if (!view->summary.counts[v]) continue;
        if (!any) nb_strbuf_add(out, "### What to do\n\n");
        any = true;
        nb_strbuf_addf(out, "- **%s** (%zu): %s\n", nb_verdict_name((enum nb_verdict)v), view->summary.counts[v],
                       nb_gate_advice((enum nb_verdict)v));
    }
    if (any) nb_strbuf_add(out, "\n");
}

/* The cases that are open, with their reasons, or the others. */
static size_t add_rows(const struct nb_gate_view *view, bool open, size_t most, struct nb_strbuf *out) {
    const char *titles[N_COLUMNS + 1];
    bool right[N_COLUMNS + 1] = {false};
    struct nb_strbuf cell = {0};
    struct nb_grid grid;
    size_t n = 0;
    memcpy((void *)titles, column_titles, sizeof column_titles);
    memcpy(right, is_right, sizeof is_right);
    titles[N_COLUMNS] = "reason";
    nb_grid_init(&grid, titles, N_COLUMNS + open);
    grid.right = right;
    for (size_t i = 0; i < view->g->n_cases; i++) {
        const struct nb_gate_case *c = &view->g->cases[view->summary.order[i]];
        if (is_open(c) != open || ++n > most) continue;
        for (int column = 0; column < N_COLUMNS; column++) {
            nb_strbuf_clear(&cell);
            add_cell(view, c, (enum gate_column)column, &cell);
            nb_grid_add(&grid, cell.text);
        }
        if (open) nb_grid_add(&grid, c->reason);
    }
    nb_strbuf_release(&cell);
    if (n) nb_grid_add_markdown(&grid, out);
    if (n > most) nb_strbuf_addf(out, "\n... and %zu more: gate.json has them all.\n", n - most);
    nb_grid_release(&grid);
    return n;
}

void nb_gate_add_markdown(const struct nb_gate_view *view, struct nb_strbuf *out) {
    const struct nb_gate_summary *s = &view->summary;
    struct nb_strbuf text = {0}, passed = {0};
    add_headline(s, out);
    add_sentence(view, out, nb_gate_say_counts);
    add_advice(view, out);
    if (add_rows(view, true, MOST_OPEN, out)) nb_strbuf_add(out, "\n");
    const size_t n_passed = add_rows(view, false, MOST_PASSED, &passed);
    if (n_passed)
        nb_strbuf_addf(out, "<details><summary>%zu case%s passed</summary>\n\n%s\n</details>\n\n", n_passed,
                       n_passed == 1 ? "" : "s", passed.text);
    add_sentence(view, out, nb_gate_say_mean);
    add_sentence(view, out, nb_gate_say_leaning);
    add_sentence(view, out, nb_gate_say_layouts);
    nb_say_machine(view->fingerprint, &text);
    if (text.len) nb_escape_markdown(out, text.text);
    nb_strbuf_clear(&text);
    nb_key_parts_common(&s->parts, &text);
    if (text.len) {
        nb_strbuf_add(out, ". All cases: ");
        nb_escape_markdown(out, text.text);
    }
    nb_strbuf_add(out, ".\n");
    nb_strbuf_release(&text);
    nb_strbuf_release(&passed);
}

/* ---- JUnit ----------------------------------------------------------------------------------------------------------- */

/* The gate as a JUnit test suite: a case is a test; what is neither passed nor failed is skipped, with the reason. */

/* "change +2.10 %, interval [..], .." */
static void add_figures(const struct nb_gate_view *view, const struct nb_gate_case *c, struct nb_strbuf *out) {
    struct nb_strbuf cell = {0};
    nb_strbuf_add(out, nb_verdict_name(c->verdict));
    if (c->reason[0]) nb_strbuf_addf(out, ": %s", c->reason);
    for (int column = CHANGE; column < N_COLUMNS; column++) {
        nb_strbuf_clear(&cell);
        add_cell(view, c, (enum gate_column)column, &cell);
        if (cell.len && column != SECONDS) nb_strbuf_addf(out, "; %s %s", column_titles[column], cell.text);
    }
    nb_strbuf_release(&cell);
}

static void add_junit_case(const struct nb_gate_view *view, const struct nb_gate_case *c, struct nb_junit *junit) {
    struct nb_strbuf figures = {0};
    add_figures(view, c, &figures);
    const bool undecided = c->verdict == NB_VERDICT_INCONCLUSIVE || c->verdict == NB_VERDICT_NONE;
    const bool open = undecided || c->verdict == NB_VERDICT_NOT_COMPARABLE;
    const bool failed = c->verdict >= NB_VERDICT_REGRESSION || (undecided && view->g->plan.inconclusive_fails);
    struct nb_strbuf why = {0};
    nb_strbuf_addf(&why, "%s: %s", nb_verdict_name(c->verdict), c->reason);
    nb_junit_add(junit, &(struct nb_junit_case){.class_name = "normbench.gate",
                                                .name = c->key,
                                                .time_s = c->seconds,
                                                .failure = failed ? nb_verdict_name(c->verdict) : NULL,
                                                .skipped = open && !failed ? why.text : NULL,
                                                .message = c->reason,
                                                .output = figures.text});
    nb_strbuf_release(&why);
    nb_strbuf_release(&figures);
}

void nb_gate_add_junit(const struct nb_gate_view *view, struct nb_strbuf *out) {
    static void (*const sentences[])(const struct nb_gate_summary *s, struct nb_strbuf *text) = {
        nb_gate_say_counts, nb_gate_say_mean, nb_gate_say_leaning, nb_gate_say_layouts};
    static const char *const names[] = {"counts", "ratio", "leaning", "layouts"};
    struct nb_junit junit = {0};
    struct nb_strbuf text = {0};
    nb_say_machine(view->fingerprint, &text);
    nb_junit_property(&junit, "machine", text.text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        nb_strbuf_clear(&text);
        sentences[i](&view->summary, &text);
        nb_junit_property(&junit, names[i], text.text);
    }
    nb_strbuf_release(&text);
    for (size_t i = 0; i < view->g->n_cases; i++) add_junit_case(view, &view->g->cases[view->summary.order[i]], &junit);
    nb_junit_finish(&junit, "normbench gate", "", view->g->elapsed_s, out);
}
