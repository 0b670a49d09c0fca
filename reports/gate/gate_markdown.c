// SPDX-License-Identifier: Apache-2.0
/* The gate as a CI's job summary ($GITHUB_STEP_SUMMARY): the verdict first, then what to do about it, then the figures; cases that
 * passed are folded away. GitHub takes at most 1 MiB of a step. */
#include <string.h>

#include "reports/gate/gate_parts.h"
#include "reports/text/escape.h"
#include "reports/text/format.h"
#include "reports/text/grid.h"

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
    const char *titles[NB_GATE_N_COLUMNS + 1];
    bool right[NB_GATE_N_COLUMNS + 1] = {false};
    struct nb_strbuf cell = {0};
    struct nb_grid grid;
    size_t n = 0;
    memcpy((void *)titles, nb_gate_titles, sizeof nb_gate_titles);
    memcpy(right, nb_gate_right, sizeof nb_gate_right);
    titles[NB_GATE_N_COLUMNS] = "reason";
    nb_grid_init(&grid, titles, NB_GATE_N_COLUMNS + open);
    grid.right = right;
    for (size_t i = 0; i < view->g->n_cases; i++) {
        const struct nb_gate_case *c = &view->g->cases[view->summary.order[i]];
        if (is_open(c) != open || ++n > most) continue;
        for (int column = 0; column < NB_GATE_N_COLUMNS; column++) {
            nb_strbuf_clear(&cell);
            nb_gate_cell(view, c, (enum nb_gate_column)column, &cell);
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
