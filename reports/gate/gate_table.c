// SPDX-License-Identifier: Apache-2.0
/* The gate on a terminal: a line a case, the worst first; then what is the matter with each that did not pass, what to do about it,
 * and what the run as a whole can tell. */
#include <math.h>
#include <string.h>

#include "reports/gate/gate_parts.h"
#include "reports/text/escape.h"
#include "reports/text/format.h"
#include "reports/text/grid.h"
#include "reports/text/screen.h"

/* ---- cells, shared with Markdown -------------------------------------------------------------------------------------- */

const char *const nb_gate_titles[NB_GATE_N_COLUMNS] = {"verdict", "case",         "change",   "interval", "seen from",
                                                       "control", "instructions", "launches", "s"};
const bool nb_gate_right[NB_GATE_N_COLUMNS] = {false, false, true, true, true, true, true, true, true};

static void add_percent(struct nb_strbuf *out, const char *format, double ratio) {
    if (isfinite(ratio)) nb_strbuf_addf(out, format, 100 * (ratio - 1));
}

void nb_gate_cell(const struct nb_gate_view *view, const struct nb_gate_case *c, enum nb_gate_column column,
                  struct nb_strbuf *out) {
    const struct nb_gate_judgement *j = &c->judgement;
    nb_strbuf_add(out, "");
    if (column == NB_GATE_VERDICT) nb_strbuf_add(out, nb_verdict_name(c->verdict));
    if (column == NB_GATE_CASE) nb_key_parts_short(&view->summary.parts, c->key, out);
    if (column == NB_GATE_SECONDS && c->seconds > 0) nb_strbuf_addf(out, "%.1f", c->seconds);
    if (column == NB_GATE_INSTRUCTIONS)
        add_percent(out, "%+.2f %%", c->instructions[NB_BUILD_CANDIDATE] / c->instructions[NB_BUILD_BASELINE]);
    if (!nb_gate_judged(c)) return;
    if (column == NB_GATE_CHANGE) add_percent(out, "%+.2f %%", j->ratio.value);
    if (column == NB_GATE_INTERVAL && nb_interval_known(&j->ratio))
        nb_strbuf_addf(out, "[%+.2f, %+.2f]", 100 * (j->ratio.low - 1), 100 * (j->ratio.high - 1));
    if (column == NB_GATE_SEEN_FROM) add_percent(out, "%.1f %%", 1 + j->smallest_effect);
    if (column == NB_GATE_CONTROL) add_percent(out, "%+.2f %%", j->control.value);
    if (column == NB_GATE_LAUNCHES) nb_strbuf_addf(out, "%zu", c->n_screen + c->n_confirm);
}

bool nb_gate_has_column(const struct nb_gate_view *view, enum nb_gate_column column) {
    struct nb_strbuf cell = {0};
    for (size_t i = 0; i < view->g->n_cases && !cell.len; i++) nb_gate_cell(view, &view->g->cases[i], column, &cell);
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
    static const int ranks[NB_GATE_N_COLUMNS] = {NB_GRID_STAYS, NB_GRID_STAYS, NB_GRID_STAYS, 6, 5, 4, 3, 1, 2};
    const char *titles[NB_GATE_N_COLUMNS];
    bool right[NB_GATE_N_COLUMNS];
    int kept_ranks[NB_GATE_N_COLUMNS];
    enum nb_gate_column columns[NB_GATE_N_COLUMNS];
    struct nb_strbuf cell = {0};
    struct nb_grid grid;
    size_t n = 0;
    for (int c = 0; c < NB_GATE_N_COLUMNS; c++) {
        if (!nb_gate_has_column(view, (enum nb_gate_column)c)) continue;
        titles[n] = nb_gate_titles[c];
        right[n] = nb_gate_right[c];
        kept_ranks[n] = ranks[c];
        columns[n++] = (enum nb_gate_column)c;
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
            nb_gate_cell(view, c, columns[k], &cell);
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
