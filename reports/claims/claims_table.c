// SPDX-License-Identifier: Apache-2.0
/* The verdicts on a terminal: a line for each claim, what was measured beside what was published, and why. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "reports/text/escape.h"
#include "reports/text/grid.h"
#include "reports/text/output.h"
#include "src/claims/claims.h"
#include "src/claims/property.h"
#include "src/core/json.h"
#include "src/core/log.h"

/* Two lines a claim: the answer in a sentence; its name and what was seen, or what is open. */
static void add_claim(const struct nb_claims_sentence *s, size_t screen, struct nb_strbuf *text) {
    enum { SAID_AT = 17, SEEN_AT = 4 };
    char *seen freed = nb_textf("%s: %s", s->id, s->seen);
    nb_strbuf_addf(text, "  %-*s", SAID_AT - 2, s->answer);
    nb_screen_hang(text, s->said, SAID_AT, screen);
    nb_strbuf_addf(text, "%*s", SEEN_AT, "");
    nb_screen_hang(text, seen, SEEN_AT, screen);
}

/* Those of a theme that were not measured: their names, in one line. */
static void add_unmeasured(const struct nb_claims_sentence *all, size_t n, const char *theme, size_t screen,
                           struct nb_strbuf *text) {
    enum { NAMES_AT = 17 };
    struct nb_strbuf names released_by(nb_strbuf_release) = {0};
    for (size_t i = 0; i < n; i++)
        if (!all[i].is_measured && strcmp(all[i].theme, theme) == 0)
            nb_strbuf_addf(&names, "%s%s", names.len ? ", " : "", all[i].id);
    if (names.len) nb_strbuf_addf(text, "  %-*s", NAMES_AT - 2, "not measured");
    if (names.len) nb_screen_hang(text, names.text, NAMES_AT, screen);
}

static void add_claims(const cJSON *document, const struct nb_page *page) {
    struct nb_claims_sentence *all;
    struct nb_strbuf *out = page->out;
    const size_t n = nb_claims_sentences(document, &all);
    const bool each = n == 1; /* of one alone, why not */
    for (size_t i = 0; i < n; i++) {
        const char *theme = all[i].theme;
        if (i == 0 || strcmp(theme, all[i - 1].theme) != 0) nb_strbuf_addf(out, "%s%s\n", i ? "\n" : "", theme);
        if (all[i].is_measured || each) add_claim(&all[i], page->screen, out);
        if (!each && (i + 1 == n || strcmp(theme, all[i + 1].theme) != 0))
            add_unmeasured(all, n, theme, page->screen, out);
    }
    nb_claims_sentences_release(all, n);
}

static void add_bugs(const cJSON *document, const struct nb_page *page) {
    struct nb_grid grid released_by(nb_grid_release);
    const size_t n = nb_claims_bugs_grid(document, &grid), n_rows = grid.n_cells / grid.n_columns;
    if (n > 0) nb_strbuf_add(page->out, "\nPublic bug reports: does their input break kernels?\n");
    if (n_rows > 0) nb_page_grid(page, &grid);
    if (n > n_rows)
        nb_strbuf_addf(page->out, "The input of %zu break%s no kernel here.\n", n - n_rows, n - n_rows == 1 ? "s" : "");
}

static void add_headline(const cJSON *document, const struct nb_page *page) {
    struct nb_strings sentences released_by(nb_strings_release) = {0};
    struct nb_strbuf note released_by(nb_strbuf_release) = {0};
    struct nb_grid grid released_by(nb_grid_release);
    if (nb_claims_headline(document, true, &grid)) {
        nb_strbuf_add(page->out, "Does RMSNorm save 7% to 64%?\n");
        nb_page_grid(page, &grid);
        nb_claims_headline_note(document, &note);
        nb_page_tell(page, &note);
        nb_claims_paper_sentence(&note);
        nb_page_tell(page, &note);
        nb_strbuf_add(page->out, "\n");
    }
    nb_claims_takeaways(document, &sentences);
    for (size_t i = 0; i < sentences.n; i++) nb_page_say(page, sentences.items[i]);
    if (sentences.n) nb_strbuf_add(page->out, "\n");
}

static void add_table(const cJSON *document, const struct nb_page *page) {
    struct nb_strbuf sentence released_by(nb_strbuf_release) = {0};
    nb_claims_counts(&sentence, document);
    nb_strbuf_add(&sentence, ".");
    nb_page_tell(page, &sentence);
    nb_claims_quick_note(document, &sentence);
    nb_page_tell(page, &sentence);
    if (!nb_json_get_bool(document, "complete"))
        nb_strbuf_add(page->out, "The run was cut short: what was not measured is named as such.\n");
    nb_strbuf_add(page->out, "\n");
    add_headline(document, page);
    add_claims(document, page);
    add_bugs(document, page);
}

int nb_claims_print(const cJSON *document, const char *format, FILE *out) {
    struct nb_strbuf text = {0};
    const struct nb_page page = nb_page_for(out, false, &text);
    if (strcmp(format, "json") == 0) return nb_output_document(document, out);
    if (strcmp(format, "markdown") == 0)
        nb_claims_markdown(document, NULL, &text);
    else
        add_table(document, &page);
    return nb_output(&text, out);
}

/* ---- --explain: a claim before it is run: what is said, by whom, what would be tried, and what would make it REPRODUCED ---- */

static void add_wrapped(struct nb_strbuf *out, const char *lead, const char *text) {
    if (!text) return;
    char *line freed = nb_textf("%s%s", lead, text);
    nb_screen_wrap(out, line, nb_screen_width(stdout), nb_utf8_wanted());
}

static void add_sources(const struct nb_claim *claim, struct nb_strbuf *out) {
    for (size_t i = 0; i < claim->n_sources; i++) {
        const struct nb_claim_source *s = &claim->sources[i];
        char *text freed = nb_textf("%s%s%s%s%s", s->cite, s->says ? ": " : "", s->says ? s->says : "",
                                    s->note ? ". " : "", s->note ? s->note : "");
        add_wrapped(out, "Source: ", text);
    }
}

/* A paragraph whose lines but the first are indented further. */
static void add_paragraph(struct nb_strbuf *out, size_t at, const char *text) {
    nb_strbuf_addf(out, "%*s", (int)at, "");
    nb_screen_hang(out, text, at + 2, nb_screen_width(stdout));
}

static bool is_told_with(const struct nb_reading *a, const struct nb_reading *b) {
    return a->alternative == b->alternative && strcmp(a->text, b->text) == 0;
}

/* Each rule that is not there yet, in a line of its own; what is published goes to a list. */
static void add_rules(const struct nb_reading *r, struct nb_strbuf *rules, struct nb_strbuf *published) {
    for (size_t i = 0; i < r->n_rules; i++) {
        const struct nb_rule *rule = &r->rules[i];
        struct nb_strbuf text released_by(nb_strbuf_release) = {0};
        nb_strbuf_add(&text, "\n");
        nb_rule_print(rule, &text);
        if (rule->text) nb_strbuf_addf(&text, " (%s)", rule->text);
        nb_strbuf_add(&text, "\n");
        if (!rules->text || !strstr(rules->text, text.text)) nb_strbuf_add(rules, text.text);
        if (isnan(rule->published.value)) continue;
        nb_strbuf_add(published, published->len ? ", " : "published: ");
        nb_rule_number_print(rule, rule->published.value, published);
    }
}

/* What readings of one text try, in prose, then their rules. */
static void add_readings(const struct nb_claim *claim, const struct nb_reading *first, struct nb_strbuf *out) {
    const struct nb_experiment *e = &claim->experiments[first->experiment];
    const char *refused = e->kind->refuses ? e->kind->refuses(e) : NULL;
    struct nb_strbuf text released_by(nb_strbuf_release) = {0}, rules released_by(nb_strbuf_release) = {0},
                          published released_by(nb_strbuf_release) = {0};
    for (size_t i = 0; i < claim->n_readings; i++) {
        const struct nb_reading *r = &claim->readings[i];
        if (!is_told_with(r, first)) continue;
        nb_strbuf_addf(&text, "%s%s", text.len ? ", " : "", r->id);
        add_rules(r, &rules, &published);
    }
    for (size_t i = 0; i < first->needs.n && !refused; i++) refused = nb_claim_lacks(first->needs.items[i]);
    nb_strbuf_addf(&text, ": %s", first->text);
    add_paragraph(out, 2, text.text);
    for (char *rest = NULL, *line = strtok_r(rules.text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        add_paragraph(out, 4, line);
    if (published.len) add_paragraph(out, 4, published.text);
    nb_strbuf_clear(&text);
    nb_strbuf_addf(&text, "cannot be tested here: %s", refused ? refused : "");
    if (refused) add_paragraph(out, 4, text.text);
}

static void add_all_readings(const struct nb_claim *claim, bool alternative, const char *title, struct nb_strbuf *out) {
    bool any = false;
    for (size_t i = 0; i < claim->n_readings; i++) {
        size_t first = 0;
        while (!is_told_with(&claim->readings[first], &claim->readings[i])) first++;
        if (claim->readings[i].alternative != alternative || first < i) continue;
        if (!any) nb_strbuf_addf(out, "\n%s\n", title);
        any = true;
        add_readings(claim, &claim->readings[i], out);
    }
}

static void add_experiments(const struct nb_claim *claim, struct nb_strbuf *out) {
    bool any = false;
    for (size_t i = 0; i < claim->n_experiments; i++) {
        const struct nb_experiment *e = &claim->experiments[i];
        struct nb_strbuf text released_by(nb_strbuf_release) = {0};
        if (!e->kind->describe) continue;
        nb_strbuf_addf(&text, "%s: ", e->name);
        e->kind->describe(e, &text);
        nb_strbuf_add(out, any ? "" : "\nExperiments\n");
        any = true;
        add_paragraph(out, 2, text.text);
    }
}

void nb_claim_explain(const struct nb_claim *claim, struct nb_strbuf *out) {
    struct nb_strbuf axes released_by(nb_strbuf_release) = {0};
    add_wrapped(out, "", claim->id);
    add_wrapped(out, "", claim->statement);
    nb_strbuf_add(out, "\n");
    add_sources(claim, out);
    add_wrapped(out, "Scope: ", claim->scope);
    add_wrapped(out, "Correction: ", claim->correction);
    add_wrapped(out, "", claim->remark);
    add_all_readings(claim, false, "It is true where each of these holds", out);
    add_all_readings(claim, true, "Also tested, without a vote", out);
    for (size_t i = 0; i < claim->n_sensitivities; i++)
        if (!axes.text || !strstr(axes.text, claim->sensitivities[i].axis))
            nb_strbuf_addf(&axes, "%s%s", i ? ", " : "", claim->sensitivities[i].axis);
    if (axes.len) nb_strbuf_add(out, "\n");
    add_wrapped(out, "It may depend on: ", axes.text);
    if (claim->changed_after_data.n) nb_strbuf_add(out, "\nChanged when data were known\n");
    for (size_t i = 0; i < claim->changed_after_data.n; i++) add_paragraph(out, 2, claim->changed_after_data.items[i]);
    add_experiments(claim, out);
    nb_strbuf_add(out, "\n");
    add_wrapped(out, "File: ", claim->path);
}

void nb_properties_explain(struct nb_strbuf *out) {
    const struct nb_property *p;
    for (size_t i = 0; (p = nb_property_at(i)); i++) {
        if (i) nb_strbuf_add(out, "\n");
        char *text freed = nb_textf("%s: %s", p->name, p->summary);
        add_wrapped(out, "", text);
        for (const struct nb_property_param *param = p->params; param->name; param++)
            nb_strbuf_addf(out, "  %s = %s%s%s\n", param->name, param->fallback, *param->help ? "   " : "",
                           param->help);
    }
}
