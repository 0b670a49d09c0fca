// SPDX-License-Identifier: Apache-2.0
/* The gate as a JUnit test suite: a case is a test; what is neither passed nor failed is skipped, with the reason. */
#include <string.h>

#include "reports/gate/gate_parts.h"
#include "reports/text/junit.h"

/* "change +2.10 %, interval [..], .." */
static void add_figures(const struct nb_gate_view *view, const struct nb_gate_case *c, struct nb_strbuf *out) {
    struct nb_strbuf cell = {0};
    nb_strbuf_add(out, nb_verdict_name(c->verdict));
    if (c->reason[0]) nb_strbuf_addf(out, ": %s", c->reason);
    for (int column = NB_GATE_CHANGE; column < NB_GATE_N_COLUMNS; column++) {
        nb_strbuf_clear(&cell);
        nb_gate_cell(view, c, (enum nb_gate_column)column, &cell);
        if (cell.len && column != NB_GATE_SECONDS) nb_strbuf_addf(out, "; %s %s", nb_gate_titles[column], cell.text);
    }
    nb_strbuf_release(&cell);
}

static void add_case(const struct nb_gate_view *view, const struct nb_gate_case *c, struct nb_junit *junit) {
    struct nb_strbuf figures = {0};
    add_figures(view, c, &figures);
    const bool untold = c->verdict == NB_VERDICT_INCONCLUSIVE || c->verdict == NB_VERDICT_NONE;
    const bool open = untold || c->verdict == NB_VERDICT_NOT_COMPARABLE;
    const bool failed = c->verdict >= NB_VERDICT_REGRESSION || (untold && view->g->plan.inconclusive_fails);
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
    for (size_t i = 0; i < view->g->n_cases; i++) add_case(view, &view->g->cases[view->summary.order[i]], &junit);
    nb_junit_finish(&junit, "normbench gate", "", view->g->elapsed_s, out);
}
