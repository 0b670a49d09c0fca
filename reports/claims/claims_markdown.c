// SPDX-License-Identifier: Apache-2.0
/* claims.md: one line a claim, then the evidence for each, so that a reader can disagree with it. */
#include "reports/claims/claims_report.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "reports/run/summary.h"
#include "reports/text/escape.h"
#include "reports/text/grid.h"
#include "src/core/json.h"

enum { MOST_FIGURES = 40 }; /* of a reading; claims.json has all */

static void add_summary(const cJSON *document, bool bugs, struct nb_strbuf *out) {
    struct nb_grid grid;
    const size_t n = nb_claims_lines_grid(document, bugs, true, &grid);
    if (n > 0 && bugs) nb_strbuf_add(out, "\n## Public bug reports: does their input break kernels?\n\n");
    if (n > 0) nb_grid_add_markdown(&grid, out);
    nb_grid_release(&grid);
}

/* ---- the headline, then every claim in a sentence ---- */

static void add_headline(const cJSON *document, struct nb_strbuf *out) {
    struct nb_grid grid;
    if (nb_claims_headline(document, &grid)) {
        nb_grid_add_markdown(&grid, out);
        nb_strbuf_add(out, "\n");
    }
    nb_grid_release(&grid);
}

static void add_sentences(const cJSON *document, struct nb_strbuf *out) {
    struct nb_claims_sentence *all;
    const size_t n = nb_claims_sentences(document, &all);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(all[i].theme, all[i - 1].theme) != 0) nb_strbuf_addf(out, "\n## %s\n\n", all[i].theme);
        nb_strbuf_add(out, "- **");
        nb_escape_markdown(out, all[i].answer);
        nb_strbuf_add(out, "**, ");
        nb_escape_markdown(out, all[i].text);
        nb_strbuf_add(out, " (");
        nb_escape_markdown(out, all[i].id);
        nb_strbuf_add(out, ")\n");
    }
    nb_claims_sentences_release(all, n);
}

static void add_paragraph(struct nb_strbuf *out, const char *lead, const char *text) {
    if (!*text) return;
    nb_strbuf_add(out, lead);
    nb_escape_markdown(out, text);
    nb_strbuf_add(out, "\n\n");
}

static void add_rules(const cJSON *reading, struct nb_strbuf *out) {
    const cJSON *rule;
    cJSON_ArrayForEach(rule, nb_json_get(reading, "expect")) {
        const double published = nb_json_get_number(rule, "published");
        nb_strbuf_add(out, "- expected: ");
        nb_escape_markdown(out, nb_json_get_string(rule, "rule"));
        if (*nb_json_get_string(rule, "text")) nb_strbuf_add(out, " (");
        nb_escape_markdown(out, nb_json_get_string(rule, "text"));
        if (*nb_json_get_string(rule, "text")) nb_strbuf_add(out, ")");
        if (isfinite(published)) nb_strbuf_addf(out, "; published %.4g", published);
        nb_strbuf_add(out, "\n");
    }
    nb_strbuf_add(out, "\n");
}

static void add_figures(const cJSON *reading, struct nb_strbuf *out) {
    static const char *const titles[] = {"where", "measured", "outcome", "why"};
    const cJSON *figures = nb_json_get(reading, "figures"), *figure;
    struct nb_grid grid;
    int n = 0;
    nb_grid_init(&grid, titles, 4);
    cJSON_ArrayForEach(figure, figures) {
        struct nb_strbuf value = {0};
        if (n++ >= MOST_FIGURES) break;
        nb_claims_figure(figure, figures, &grid.cell, &value);
        nb_grid_end_cell(&grid);
        nb_grid_row(&grid, value.text, nb_json_get_string(figure, "outcome"), nb_json_get_string(figure, "reason"));
        nb_strbuf_release(&value);
    }
    if (n > 0) nb_grid_add_markdown(&grid, out);
    if (n > MOST_FIGURES)
        nb_strbuf_addf(out, "\n%d of %d figures; claims.json has all.\n", MOST_FIGURES, cJSON_GetArraySize(figures));
    nb_strbuf_add(out, "\n");
    nb_grid_release(&grid);
}

static void add_claim(const cJSON *claim, struct nb_strbuf *out) {
    const cJSON *source, *reading;
    struct nb_strbuf sensed = {0};
    nb_strbuf_add(out, "<details><summary>");
    nb_escape_html(out, nb_json_get_string(claim, "id"));
    nb_strbuf_add(out, ": ");
    nb_escape_html(out, nb_json_get_string(claim, "verdict"));
    nb_strbuf_add(out, "</summary>\n\n");
    add_paragraph(out, "> ", nb_json_get_string(claim, "statement"));
    cJSON_ArrayForEach(source, nb_json_get(claim, "sources")) {
        nb_strbuf_add(out, "- source: ");
        nb_escape_markdown(out, nb_json_get_string(source, "cite"));
        if (*nb_json_get_string(source, "says")) nb_strbuf_add(out, ": ");
        nb_escape_markdown(out, nb_json_get_string(source, "says"));
        if (*nb_json_get_string(source, "note")) nb_strbuf_add(out, ". ");
        nb_escape_markdown(out, nb_json_get_string(source, "note"));
        nb_strbuf_add(out, "\n");
    }
    nb_strbuf_add(out, "\n");
    add_paragraph(out, "Scope: ", nb_json_get_string(claim, "scope"));
    add_paragraph(out, "Correction: ", nb_json_get_string(claim, "correction"));
    add_paragraph(out, "", nb_json_get_string(claim, "remark"));
    cJSON_ArrayForEach(source, nb_json_get(claim, "changed_after_data"))
        add_paragraph(out, "Rule changed after data were known: ", cJSON_GetStringValue(source));
    cJSON_ArrayForEach(reading, nb_json_get(claim, "readings")) {
        nb_strbuf_add(out, "**");
        nb_escape_markdown(out, nb_json_get_string(reading, "id"));
        nb_strbuf_add(out, nb_json_get_bool(reading, "alternative") ? ", another reading** (" : "** (");
        nb_escape_markdown(out, nb_json_get_string(reading, "kind"));
        nb_strbuf_add(out, "): ");
        nb_escape_markdown(out, nb_json_get_string(reading, "verdict"));
        nb_strbuf_add(out, ". ");
        add_paragraph(out, "", nb_json_get_string(reading, "text"));
        add_paragraph(out, "", nb_json_get_string(reading, "reason"));
        add_rules(reading, out);
        add_figures(reading, out);
    }
    nb_claims_sensitivity(&sensed, claim);
    add_paragraph(out, "What makes or breaks it: ", sensed.text);
    nb_strbuf_add(out, "</details>\n\n");
    nb_strbuf_release(&sensed);
}

static void add_pictures(const struct nb_figures *figures, struct nb_strbuf *out) {
    if (!figures || figures->n == 0) return;
    nb_strbuf_add(out, "\n## Pictures\n\n");
    for (size_t i = 0; i < figures->n; i++) {
        nb_strbuf_addf(out, "![%s](%s/%s.svg)\n\n", figures->list[i].name, NB_CLAIMS_PLOTS, figures->list[i].name);
        add_paragraph(out, "", figures->list[i].caption ? figures->list[i].caption : "");
    }
}

void nb_claims_markdown(const cJSON *document, const struct nb_figures *figures, struct nb_strbuf *out) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)document};
    struct nb_strbuf machine = {0};
    const cJSON *claim;
    nb_meta_footer(&meta, &machine);
    nb_strbuf_add(out, "# Claims\n\n");
    add_paragraph(out, "", machine.text);
    nb_strbuf_clear(&machine);
    nb_claims_counts(&machine, document);
    nb_escape_markdown(out, machine.text);
    nb_strbuf_release(&machine);
    nb_strbuf_addf(out, "%s. Cuts are 1 - t / t_LN, ratios t_LN / t; intervals are at 95 %% over launches.\n\n",
                   nb_json_get_bool(document, "quick") ? " (quick)" : "");
    add_headline(document, out);
    add_sentences(document, out);
    nb_strbuf_add(out, "\n<details><summary>All figures beside what was published</summary>\n\n");
    add_summary(document, false, out);
    nb_strbuf_add(out, "\n</details>\n");
    add_summary(document, true, out);
    nb_claims_paper_markdown(document, out);
    nb_claims_training_tables(document, false, out);
    add_pictures(figures, out);
    nb_strbuf_add(out, "\n## Evidence\n\n");
    cJSON_ArrayForEach(claim, nb_json_get(document, "claims")) add_claim(claim, out);
}
