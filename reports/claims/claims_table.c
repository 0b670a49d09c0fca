// SPDX-License-Identifier: Apache-2.0
/* The verdicts on a terminal: a line for each claim, what was measured beside what was published, and why. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "reports/text/escape.h"
#include "reports/text/grid.h"
#include "reports/text/output.h"
#include "src/claims/claims.h"
#include "src/claims/property.h"
#include "src/core/json.h"

bool nb_claims_format_known(const char *format) {
    return strcmp(format, "table") == 0 || strcmp(format, "markdown") == 0 || strcmp(format, "json") == 0;
}

/* A text in lines that begin at a column, but for the first, which begins where the line is. */
static void add_hanging(struct nb_strbuf *out, const char *text, size_t at, size_t screen) {
    struct nb_strbuf safe = {0};
    size_t column = at;
    nb_strbuf_add(&safe, "");
    nb_escape_terminal(&safe, text, nb_utf8_wanted());
    for (char *rest = NULL, *word = strtok_r(safe.text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        const size_t cells = nb_utf8_cells(word);
        if (column > at && column + 1 + cells > screen) {
            nb_strbuf_addf(out, "\n%*s", (int)at, "");
            column = at;
        }
        nb_strbuf_addf(out, "%s%s", column > at ? " " : "", word);
        column += (column > at) + cells;
    }
    nb_strbuf_add(out, "\n");
    nb_strbuf_release(&safe);
}

/* Two lines a claim: its verdict and what it says; its name and what was seen, or what is open. */
static void add_claim(const struct nb_claims_sentence *s, size_t screen, struct nb_strbuf *text) {
    enum { TITLE_AT = 18, SEEN_AT = 4 };
    char *seen = nb_textf("%s: %s", s->id, s->seen);
    nb_strbuf_addf(text, "  %-*s", TITLE_AT - 2, s->verdict);
    add_hanging(text, s->title, TITLE_AT, screen);
    nb_strbuf_addf(text, "%*s", SEEN_AT, "");
    add_hanging(text, seen, SEEN_AT, screen);
    free(seen);
}

static void add_claims(const cJSON *document, FILE *out, struct nb_strbuf *text) {
    struct nb_claims_sentence *all;
    const size_t n = nb_claims_sentences(document, &all);
    for (size_t i = 0; i < n; i++) {
        const bool begins = i == 0 || strcmp(all[i].theme, all[i - 1].theme) != 0;
        if (begins) nb_strbuf_addf(text, "%s%s\n", i ? "\n" : "", all[i].theme);
        add_claim(&all[i], nb_screen_width(out), text);
    }
    nb_claims_sentences_release(all, n);
}

static void add_bugs(const cJSON *document, FILE *out, struct nb_strbuf *text) {
    struct nb_grid grid;
    const size_t n = nb_claims_bugs_grid(document, &grid);
    grid.screen = nb_screen_width(out);
    if (n > 0) nb_strbuf_add(text, "\nPublic bug reports: does their input break kernels?\n");
    if (n > 0) nb_grid_add_table(&grid, nb_screen_color(out), text);
    nb_grid_release(&grid);
}

static void add_headline(const cJSON *document, FILE *out, struct nb_strbuf *text) {
    struct nb_strings sentences = {0};
    struct nb_grid grid;
    if (nb_claims_headline(document, true, &grid)) {
        grid.screen = nb_screen_width(out);
        nb_grid_add_table(&grid, nb_screen_color(out), text);
        nb_screen_wrap(
            text,
            "norm alone: unfused / fused. d: cost of launching an operation at which the published figure is reached on "
            "the source's GPU (a model). GPU, PyTorch: the norms as the sources print them.",
            nb_screen_width(out), nb_utf8_wanted());
        nb_strbuf_add(text, "\n");
    }
    nb_grid_release(&grid);
    nb_claims_takeaways(document, &sentences);
    for (size_t i = 0; i < sentences.n; i++)
        nb_screen_wrap(text, sentences.items[i], nb_screen_width(out), nb_utf8_wanted());
    if (sentences.n) nb_strbuf_add(text, "\n");
    nb_strings_release(&sentences);
}

static void add_table(const cJSON *document, FILE *out, struct nb_strbuf *text) {
    add_headline(document, out, text);
    add_claims(document, out, text);
    add_bugs(document, out, text);
    struct nb_strbuf counts = {0};
    nb_claims_counts(&counts, document);
    nb_strbuf_add(text, "\n");
    nb_strbuf_add(&counts, ".");
    nb_screen_wrap(text, counts.text, nb_screen_width(out), nb_utf8_wanted());
    nb_strbuf_add(text, "cut = 1 - t / t_LN, ratio = t_LN / t; intervals at 95 % over launches.\n");
    nb_strbuf_release(&counts);
    if (!nb_json_get_bool(document, "complete"))
        nb_strbuf_add(text, "The run was cut short: what was not measured is named as such.\n");
}

int nb_claims_print(const cJSON *document, const char *format, FILE *out) {
    struct nb_strbuf text = {0};
    nb_strbuf_add(&text, "");
    if (strcmp(format, "json") == 0) {
        nb_json_print_pretty(document, 0, &text);
        nb_strbuf_add(&text, "\n");
    } else if (strcmp(format, "markdown") == 0) {
        nb_claims_markdown(document, NULL, &text);
    } else {
        add_table(document, out, &text);
    }
    return nb_output(&text, out);
}

/* ---- --explain: a claim before it is run: what is said, by whom, what would be tried, and what would make it REPRODUCED ---- */

static void add_wrapped(struct nb_strbuf *out, const char *lead, const char *text) {
    if (!text) return;
    char *line = nb_textf("%s%s", lead, text);
    nb_screen_wrap(out, line, nb_screen_width(stdout), nb_utf8_wanted());
    free(line);
}

static void add_sources(const struct nb_claim *claim, struct nb_strbuf *out) {
    for (size_t i = 0; i < claim->n_sources; i++) {
        const struct nb_claim_source *s = &claim->sources[i];
        char *text = nb_textf("%s%s%s%s%s", s->cite, s->says ? ": " : "", s->says ? s->says : "", s->note ? ". " : "",
                              s->note ? s->note : "");
        add_wrapped(out, "source: ", text);
        free(text);
    }
}

static void add_reading(const struct nb_claim *claim, const struct nb_reading *r, struct nb_strbuf *out) {
    const struct nb_experiment *e = &claim->experiments[r->experiment];
    const char *refused = e->kind->refuses ? e->kind->refuses(e) : NULL;
    struct nb_strbuf text = {0};
    nb_strbuf_addf(&text, "%s%s (%s)", r->id, r->alternative ? ", another reading" : "", e->kind->name);
    nb_strbuf_add(out, "\n");
    add_wrapped(out, "", text.text);
    add_wrapped(out, "  ", r->text);
    for (size_t i = 0; i < r->needs.n && !refused; i++) refused = nb_claim_lacks(r->needs.items[i]);
    if (refused) add_wrapped(out, "  cannot be tested here: ", refused);
    for (size_t i = 0; i < r->n_rules; i++) {
        nb_strbuf_clear(&text);
        nb_rule_print(&r->rules[i], &text);
        if (r->rules[i].text) nb_strbuf_addf(&text, " (%s)", r->rules[i].text);
        const double published = r->rules[i].published.value;
        if (isfinite(published)) nb_strbuf_addf(&text, "; published %.4g", published);
        add_wrapped(out, "  expects ", text.text);
    }
    nb_strbuf_release(&text);
}

static void add_experiments(const struct nb_claim *claim, struct nb_strbuf *out) {
    for (size_t i = 0; i < claim->n_experiments; i++) {
        const struct nb_experiment *e = &claim->experiments[i];
        struct nb_strbuf text = {0};
        if (!e->kind->describe) continue;
        nb_strbuf_addf(&text, "experiment %s, ", e->name);
        e->kind->describe(e, &text);
        nb_strbuf_add(out, "\n");
        add_wrapped(out, "", text.text);
        nb_strbuf_release(&text);
    }
}

void nb_claim_explain(const struct nb_claim *claim, struct nb_strbuf *out) {
    struct nb_strbuf axes = {0};
    add_wrapped(out, "", claim->id);
    add_wrapped(out, "", claim->statement);
    nb_strbuf_add(out, "\n");
    add_sources(claim, out);
    add_wrapped(out, "scope: ", claim->scope);
    add_wrapped(out, "correction: ", claim->correction);
    add_wrapped(out, "", claim->remark);
    for (size_t i = 0; i < claim->changed_after_data.n; i++)
        add_wrapped(out, "rule changed after data were known: ", claim->changed_after_data.items[i]);
    for (size_t i = 0; i < claim->n_readings; i++) add_reading(claim, &claim->readings[i], out);
    add_experiments(claim, out);
    for (size_t i = 0; i < claim->n_sensitivities; i++)
        nb_strbuf_addf(&axes, "%s%s", i ? ", " : "", claim->sensitivities[i].axis);
    if (axes.len) nb_strbuf_add(out, "\n");
    add_wrapped(out, "may depend on: ", axes.text);
    add_wrapped(out, "file: ", claim->path);
    nb_strbuf_release(&axes);
}

void nb_properties_explain(struct nb_strbuf *out) {
    const struct nb_property *p;
    for (size_t i = 0; (p = nb_property_at(i)); i++) {
        if (i) nb_strbuf_add(out, "\n");
        char *text = nb_textf("%s: %s", p->name, p->summary);
        add_wrapped(out, "", text);
        for (const struct nb_property_param *param = p->params; param->name; param++)
            nb_strbuf_addf(out, "  %s = %s%s%s\n", param->name, param->fallback, *param->help ? "   " : "",
                           param->help);
        free(text);
    }
}
