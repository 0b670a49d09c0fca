// SPDX-License-Identifier: Apache-2.0
/* claims.md and claims.html by one writer: the paper's rows, one sentence a claim, then the evidence for each, so that a reader can disagree
 * with it. */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "reports/run/report.h"
#include "reports/text/escape.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"

enum { MOST_FIGURES = 40 }; /* of a reading, in Markdown; claims.json has all */

/* ---- the headline, then every claim in a sentence ---- */

static void add_headline(const struct nb_claims_page *p, const cJSON *document) {
    struct nb_grid grid released_by(nb_grid_release);
    struct nb_strings sentences released_by(nb_strings_release) = {0};
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    if (nb_claims_headline(document, false, &grid)) {
        nb_claims_heading(p, 2, "headline", "Does RMSNorm save 7% to 64%?");
        nb_claims_grid(p, &grid);
        nb_claims_add(p, "\n", "");
        nb_claims_headline_note(document, &text);
        nb_claims_say(p, "", text.text);
        nb_strbuf_clear(&text);
        nb_claims_paper_sentence(&text);
        nb_claims_say(p, "", text.text);
    }
    nb_claims_takeaways(document, &sentences);
    nb_claims_add(p, "", sentences.n ? "<ul>\n" : "");
    for (size_t i = 0; i < sentences.n; i++) nb_claims_item(p, sentences.items[i]);
    nb_claims_add(p, "\n", sentences.n ? "</ul>\n" : "");
}

static void add_sentence(const struct nb_claims_page *p, const struct nb_claims_sentence *s) {
    nb_claims_add(p, "- **", "<li><b>");
    nb_strbuf_addf(p->out, "%c", toupper((unsigned char)s->answer[0]));
    nb_claims_text(p, s->answer + 1);
    nb_claims_add(p, ":** ", ":</b> ");
    nb_claims_text(p, s->said);
    nb_strbuf_add(p->out, *s->seen ? ": " : "");
    nb_claims_text(p, s->seen);
    nb_claims_add(p, " (", " <a class=\"dim\" href=\"#");
    nb_claims_text(p, s->id);
    if (p->html) nb_html_text(p->out, "\">", s->id, "");
    nb_claims_add(p, ")\n", "</a></li>\n");
}

static void add_sentences(const struct nb_claims_page *p, const cJSON *document) {
    struct nb_claims_sentence *all;
    const size_t n = nb_claims_sentences(document, &all);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(all[i].theme, all[i - 1].theme) != 0) {
            nb_claims_add(p, "", i ? "</ul>\n" : "");
            nb_claims_heading(p, 2, "", all[i].theme);
            nb_claims_add(p, "", "<ul>\n");
        }
        add_sentence(p, &all[i]);
    }
    nb_claims_add(p, "", n ? "</ul>\n" : "");
    nb_claims_sentences_release(all, n);
}

static void add_lines(const struct nb_claims_page *p, const cJSON *document, bool bugs) {
    struct nb_grid grid released_by(nb_grid_release);
    const size_t n = nb_claims_lines_grid(document, bugs, &grid);
    if (n > 0 && bugs) nb_claims_heading(p, 2, "bugs", "Public bug reports: does their input break kernels?");
    if (n > 0) nb_claims_grid(p, &grid);
}

/* ---- evidence ---- */

static void add_item(const struct nb_claims_page *p, const char *lead, const char *text, const char *before,
                     const char *more, const char *behind) {
    nb_claims_add(p, "- ", "<li>");
    nb_strbuf_add(p->out, lead);
    nb_claims_text(p, text);
    if (*more) nb_strbuf_add(p->out, before);
    nb_claims_text(p, more);
    if (*more) nb_strbuf_add(p->out, behind);
}

static void add_sources(const struct nb_claims_page *p, const cJSON *claim) {
    const cJSON *source;
    nb_claims_add(p, "", "<ul class=\"dim\">\n");
    cJSON_ArrayForEach(source, nb_json_get(claim, "sources")) {
        const char *note = nb_json_get_string(source, "note");
        add_item(p, "source: ", nb_json_get_string(source, "cite"), ": ", nb_json_get_string(source, "says"), "");
        if (*note) nb_strbuf_add(p->out, ". ");
        nb_claims_text(p, note);
        nb_claims_add(p, "\n", "</li>\n");
    }
    nb_claims_add(p, "\n", "</ul>\n");
}

static void add_rules(const struct nb_claims_page *p, const cJSON *reading) {
    const cJSON *rule;
    nb_claims_add(p, "", "<ul class=\"dim\">\n");
    cJSON_ArrayForEach(rule, nb_json_get(reading, "expect")) {
        add_item(p, "expected: ", nb_json_get_string(rule, "rule"), " (", nb_json_get_string(rule, "text"), ")");
        nb_claims_published(rule, "; published ", p->out);
        nb_claims_add(p, "\n", "</li>\n");
    }
    nb_claims_add(p, "\n", "</ul>\n");
}

static void add_figures(const struct nb_claims_page *p, const cJSON *reading) {
    const cJSON *figures = nb_json_get(reading, "figures"), *figure;
    struct nb_grid grid released_by(nb_grid_release) = nb_grid_of("where", "measured", "outcome", "why", "evidence");
    const int n = cJSON_GetArraySize(figures);
    int i = 0;
    if (!p->html) grid.n_columns = 4;
    cJSON_ArrayForEach(figure, figures) {
        struct nb_strbuf value released_by(nb_strbuf_release) = {0};
        if (i++ >= MOST_FIGURES && !p->html) break;
        nb_claims_figure(figure, figures, &grid.cell, &value);
        nb_grid_end_cell(&grid);
        nb_grid_row(&grid, value.text, nb_json_get_string(figure, "outcome"), nb_json_get_string(figure, "reason"));
        if (p->html) nb_grid_add(&grid, nb_json_get_string(figure, "evidence"));
    }
    if (n > 0 && p->html) nb_strbuf_addf(p->out, "<details><summary>%d figure%s</summary>\n", n, n == 1 ? "" : "s");
    if (n > 0) nb_claims_grid(p, &grid);
    if (n > MOST_FIGURES && !p->html)
        nb_strbuf_addf(p->out, "\n%d of %d figures; claims.json has all.\n", MOST_FIGURES, n);
    nb_claims_add(p, "\n", n > 0 ? "</details>\n" : "");
}

static void add_reading(const struct nb_claims_page *p, const cJSON *reading) {
    nb_claims_add(p, "**", "<p><b>");
    nb_claims_text(p, nb_json_get_string(reading, "id"));
    nb_strbuf_add(p->out, nb_json_get_bool(reading, "alternative") ? ", another reading" : "");
    nb_claims_add(p, "** (", "</b> (");
    nb_claims_text(p, nb_json_get_string(reading, "kind"));
    nb_claims_add(p, "): ", "): <b>");
    nb_claims_text(p, nb_json_get_string(reading, "verdict"));
    nb_claims_add(p, ". ", "</b></p>\n");
    nb_claims_say(p, "", nb_json_get_string(reading, "text"));
    nb_claims_say(p, "", nb_json_get_string(reading, "reason"));
    add_rules(p, reading);
    add_figures(p, reading);
}

static void add_claim(const struct nb_claims_page *p, const cJSON *claim) {
    const cJSON *item;
    struct nb_strbuf sensed released_by(nb_strbuf_release) = nb_strbuf_empty();
    nb_claims_add(p, "<details>", "<details id=\"");
    if (p->html) nb_html_text(p->out, "", nb_json_get_string(claim, "id"), "");
    nb_claims_add(p, "<summary>", "\"><summary>");
    nb_escape_html(p->out, nb_json_get_string(claim, "id"));
    nb_strbuf_add(p->out, ": ");
    nb_escape_html(p->out, nb_claims_verdict(claim));
    nb_claims_add(p, "</summary>\n\n", "</summary>\n");
    nb_claims_say(p, p->html ? "" : "> ", nb_json_get_string(claim, "statement"));
    add_sources(p, claim);
    nb_claims_say(p, "Scope: ", nb_json_get_string(claim, "scope"));
    nb_claims_say(p, "Correction: ", nb_json_get_string(claim, "correction"));
    nb_claims_say(p, "", nb_json_get_string(claim, "remark"));
    cJSON_ArrayForEach(item, nb_json_get(claim, "changed_after_data")) {
        const char *change = cJSON_GetStringValue(item);
        nb_claims_say(p, "Rule changed after data were known: ", change ? change : "");
    }
    cJSON_ArrayForEach(item, nb_json_get(claim, "readings")) add_reading(p, item);
    nb_claims_sensitivity(&sensed, claim);
    nb_claims_say(p, "What makes or breaks it: ", sensed.text);
    nb_claims_add(p, "</details>\n\n", "</details>\n");
}

/* ---- the whole ---- */

/* figures: pictures to be linked, or null. */
static void add_links(const struct nb_claims_page *p, const struct nb_figures *figures, const char *prefix) {
    for (size_t i = 0; figures && i < figures->n; i++) {
        const struct nb_figure *f = &figures->list[i];
        if (strncmp(f->name, prefix, strlen(prefix)) != 0) continue;
        nb_strbuf_addf(p->out, "![%s](%s/%s.svg)\n\n", f->name, NB_CLAIMS_PLOTS, f->name);
        nb_claims_say(p, "", f->caption ? f->caption : "");
    }
}

static void add_pictures(const struct nb_claims_page *p, const struct nb_html_pictures *pictures, const char *prefix,
                         const char *folded) {
    if (!p->html)
        add_links(p, pictures->figures, prefix);
    else if (folded)
        nb_html_more_figures(pictures, prefix, 0, folded, p->out);
    else
        nb_html_figures(pictures, prefix, 0, 1, p->out);
}

static void add_top(const struct nb_claims_page *p, const cJSON *document) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)document};
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    const cJSON *item;
    nb_claims_add(p, "# Claims\n\n", "<h1>Claims</h1>\n");
    nb_meta_footer(&meta, &text);
    nb_strbuf_add(&text, nb_json_get_bool(document, "quick") ? ", --quick: " : ": ");
    nb_claims_counts(&text, document);
    nb_strbuf_add(&text, ".");
    nb_claims_say(p, "", text.text);
    nb_strbuf_clear(&text);
    nb_claims_quick_note(document, &text);
    nb_claims_say(p, "", text.text ? text.text : "");
    nb_claims_add(p, "", "<nav><a href=\"#verdicts\">figures</a><a href=\"#evidence\">evidence</a>");
    cJSON_ArrayForEach(item, nb_json_get(document, "folders")) {
        if (!p->html || !cJSON_IsString(item)) continue;
        nb_html_text(p->out, "<a href=\"", item->valuestring, "/index.html\">");
        nb_html_text(p->out, "", item->string, "</a>");
    }
    nb_claims_add(p, "", "</nav>\n");
}

static void add_all(const struct nb_claims_page *p, const cJSON *document, struct nb_figures *figures,
                    const char *dir) {
    const struct nb_html_pictures pictures = {figures, dir, NB_CLAIMS_PLOTS};
    const cJSON *item;
    add_top(p, document);
    add_headline(p, document);
    add_pictures(p, &pictures, "savings", NULL);
    add_sentences(p, document);
    nb_claims_add(p, "\n<details>", "<details id=\"verdicts\">");
    nb_claims_add(p, "<summary>All figures beside what was published</summary>\n\n",
                  "<summary>All figures beside what was published</summary>\n");
    add_lines(p, document, false);
    nb_claims_add(p, "\n</details>\n", "</details>\n");
    add_lines(p, document, true);
    nb_claims_paper(p, document);
    nb_claims_steps(p, document);
    nb_claims_training_tables(p, document);
    add_pictures(p, &pictures, "loss-", "Loss while training");
    if (p->html) nb_html_not_drawn(figures, p->out);
    nb_claims_heading(p, 2, "evidence", "Evidence");
    cJSON_ArrayForEach(item, nb_json_get(document, "claims")) add_claim(p, item);
}

void nb_claims_markdown(const cJSON *document, struct nb_figures *figures, struct nb_strbuf *out) {
    add_all(&(struct nb_claims_page){.out = out}, document, figures, "");
}

static int write_page(const char *dir, const char *name, const struct nb_strbuf *text) {
    char *path freed = nb_path_join(dir, name);
    return nb_file_write(path, text->text, text->len);
}

int nb_claims_pages(const char *dir, const cJSON *document, bool plots) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)document};
    struct nb_figures figures released_by(nb_figures_release) = {.notes = nb_strbuf_empty()};
    struct nb_strbuf page released_by(nb_strbuf_release) = {0}, markdown released_by(nb_strbuf_release) = {0};
    int result = 0;
    nb_claims_savings_figure(&figures, document, &meta);
    nb_claims_training_figures(&figures, document, &meta);
    if (plots) result = nb_figures_write(&figures, dir, NB_CLAIMS_PLOTS);
    nb_claims_markdown(document, plots ? &figures : NULL, &markdown);
    if (result == 0) result = write_page(dir, NB_CLAIMS_MARKDOWN, &markdown);
    nb_html_head("claims", &page);
    add_all(&(struct nb_claims_page){.html = true, .out = &page}, document, &figures, dir);
    nb_html_end(&page);
    if (result == 0) result = write_page(dir, NB_CLAIMS_PAGE, &page);
    return result;
}
