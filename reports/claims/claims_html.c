// SPDX-License-Identifier: Apache-2.0
/* The page of a run of claims, DIR/claims.html, with its pictures, and DIR/claims.md. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "reports/figures/figure.h"
#include "reports/run/report.h"
#include "reports/run/summary.h"
#include "src/claims/claims.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/text.h"

static const char *class_of(const char *verdict) {
    if (strcmp(verdict, nb_claim_verdict_names[NB_REPRODUCED]) == 0) return "g gA";
    if (strcmp(verdict, nb_claim_verdict_names[NB_NOT_REPRODUCED]) == 0) return "g gF";
    return nb_claim_is_decided(verdict) ? "g gC" : "g";
}

static void add_line(const struct nb_claims_line *line, struct nb_strbuf *out) {
    nb_html_text(out, "<tr><td class=\"k\"><a href=\"#", nb_json_get_string(line->claim, "id"), "\">");
    nb_html_text(out, line->reading ? "&nbsp;&nbsp;" : "", line->name, "</a>");
    nb_html_cell(out, "w", line->title);
    nb_html_cell(out, class_of(line->verdict), line->verdict);
    nb_html_cell(out, "w", line->measured);
    nb_html_cell(out, "n m", line->published);
    nb_html_cell(out, "w", line->why);
    nb_strbuf_add(out, "\n");
}

static void add_summary(const cJSON *document, bool bugs, const char *heading, struct nb_strbuf *out) {
    struct nb_claims_line *lines;
    const size_t n = nb_claims_lines(document, bugs, &lines);
    if (n > 0) {
        nb_strbuf_add(out, heading);
        nb_strbuf_add(
            out,
            "<div class=wrap><table class=rows>\n<tr><th class=k>claim<th class=w>statement<th class=g>verdict<th class=w>measured"
            "<th class=\"n m\">published<th class=w>why\n");
        for (size_t i = 0; i < n; i++) add_line(&lines[i], out);
        nb_strbuf_add(out, "</table></div>\n");
    }
    nb_claims_lines_release(lines, n);
}

/* ---- the headline, then every claim in a sentence ---- */

static void add_headline(const cJSON *document, struct nb_strbuf *out) {
    struct nb_grid grid;
    if (nb_claims_headline(document, &grid)) nb_claims_grid_html(&grid, out);
    nb_grid_release(&grid);
}

static void add_sentences(const cJSON *document, struct nb_strbuf *out) {
    struct nb_claims_sentence *all;
    const size_t n = nb_claims_sentences(document, &all);
    for (size_t i = 0; i < n; i++) {
        const bool first = i == 0 || strcmp(all[i].theme, all[i - 1].theme) != 0;
        if (first) {
            nb_strbuf_add(out, i ? "</ul>\n" : "");
            nb_html_text(out, "<h2>", all[i].theme, "</h2>\n<ul>\n");
        }
        nb_html_text(out, "<li><b>", all[i].answer, "</b>, ");
        nb_html_text(out, "", all[i].text, "");
        nb_html_text(out, " <a class=\"dim\" href=\"#", all[i].id, "\">");
        nb_html_text(out, "", all[i].id, "</a></li>\n");
    }
    nb_strbuf_add(out, n ? "</ul>\n" : "");
    nb_claims_sentences_release(all, n);
}

/* ---- evidence ---- */

static bool any_has(const cJSON *figures, const char *name) {
    const cJSON *figure;
    cJSON_ArrayForEach(figure, figures) {
        if (*nb_json_get_string(figure, name)) return true;
    }
    return false;
}

/* A reason and its evidence are columns only where there are any. */
static void add_figures(const cJSON *reading, struct nb_strbuf *out) {
    const cJSON *figures = nb_json_get(reading, "figures"), *figure;
    const bool why = any_has(figures, "reason"), evidence = any_has(figures, "evidence");
    if (!cJSON_GetArraySize(figures)) return;
    nb_strbuf_addf(out,
                   "<details><summary>%d figures</summary>\n<div class=wrap><table class=rows>\n<tr><th class=k>where"
                   "<th class=\"n m\">measured<th>outcome%s%s\n",
                   cJSON_GetArraySize(figures), why ? "<th class=w>why" : "", evidence ? "<th class=w>evidence" : "");
    cJSON_ArrayForEach(figure, figures) {
        struct nb_strbuf where = {0}, value = {0};
        nb_claims_figure(figure, figures, &where, &value);
        nb_strbuf_add(out, "<tr>");
        nb_html_cell(out, "k w", where.text);
        nb_html_cell(out, "n m", value.text);
        nb_html_cell(out, "", nb_json_get_string(figure, "outcome"));
        if (why) nb_html_cell(out, "w", nb_json_get_string(figure, "reason"));
        if (evidence) nb_html_cell(out, "w", nb_json_get_string(figure, "evidence"));
        nb_strbuf_add(out, "\n");
        nb_strbuf_release(&where);
        nb_strbuf_release(&value);
    }
    nb_strbuf_add(out, "</table></div></details>\n");
}

static void add_reading(const cJSON *reading, struct nb_strbuf *out) {
    const cJSON *rule;
    nb_html_text(out, "<p><b>", nb_json_get_string(reading, "id"), "</b> ");
    nb_strbuf_add(out, nb_json_get_bool(reading, "alternative") ? "(another reading) " : "");
    nb_html_text(out, "", nb_json_get_string(reading, "text"), ": ");
    nb_html_text(out, "<b>", nb_json_get_string(reading, "verdict"), "</b>");
    nb_html_text(out, ", ", nb_json_get_string(reading, "reason"), "");
    nb_strbuf_add(out, "</p>\n<ul class=\"dim\">\n");
    cJSON_ArrayForEach(rule, nb_json_get(reading, "expect")) {
        nb_html_text(out, "<li>expected: ", nb_json_get_string(rule, "rule"), "");
        nb_html_text(out, " (", nb_json_get_string(rule, "text"), ")");
        nb_strbuf_add(out, "</li>\n");
    }
    nb_strbuf_add(out, "</ul>\n");
    add_figures(reading, out);
}

static void add_claim(const cJSON *claim, struct nb_strbuf *out) {
    const cJSON *item;
    struct nb_strbuf sensed = {0};
    nb_html_text(out, "<details id=\"", nb_json_get_string(claim, "id"), "\"><summary>");
    nb_html_text(out, "", nb_json_get_string(claim, "id"), ": ");
    nb_html_text(out, "", nb_json_get_string(claim, "verdict"), "");
    nb_strbuf_add(out, "</summary>\n");
    nb_html_text(out, "<p>", nb_json_get_string(claim, "statement"), "</p>\n");
    cJSON_ArrayForEach(item, nb_json_get(claim, "sources")) {
        nb_html_text(out, "<p class=\"dim\">", nb_json_get_string(item, "cite"), "");
        nb_html_text(out, ": ", nb_json_get_string(item, "says"), "");
        nb_html_text(out, ". ", nb_json_get_string(item, "note"), "");
        nb_strbuf_add(out, "</p>\n");
    }
    nb_html_text(out, "<p class=\"dim\">Scope: ", nb_json_get_string(claim, "scope"), "</p>\n");
    nb_html_text(out, "<p>Correction: ", nb_json_get_string(claim, "correction"), "</p>\n");
    nb_html_text(out, "<p>", nb_json_get_string(claim, "remark"), "</p>\n");
    cJSON_ArrayForEach(item, nb_json_get(claim, "changed_after_data"))
        nb_html_text(out, "<p><b>Rule changed after data were known:</b> ", cJSON_GetStringValue(item), "</p>\n");
    cJSON_ArrayForEach(item, nb_json_get(claim, "readings")) add_reading(item, out);
    nb_claims_sensitivity(&sensed, claim);
    nb_html_text(out, "<p>What makes or breaks it: ", sensed.text, "</p>\n");
    nb_strbuf_add(out, "</details>\n");
    nb_strbuf_release(&sensed);
}

/* ---- the page ---- */

static void add_paper(struct nb_strbuf *out) {
    struct nb_strbuf text = {0};
    nb_paper_sentences(&text);
    if (text.len > 0) {
        nb_strbuf_add(out, "<h2 id=\"paper\">What the 64 % is</h2>\n");
        nb_html_text(out, "<p>", text.text, "</p>\n");
    }
    nb_strbuf_release(&text);
}

/* The pages of the runs behind it. */
static void add_runs(const cJSON *document, struct nb_strbuf *out) {
    const cJSON *folders = nb_json_get(document, "folders"), *folder;
    cJSON_ArrayForEach(folder, folders) {
        if (!cJSON_IsString(folder)) continue;
        nb_html_text(out, "<a href=\"", folder->valuestring, "/index.html\">");
        nb_html_text(out, "", folder->string, "</a>");
    }
}

static void add_page(const cJSON *document, struct nb_figures *figures, const char *dir, struct nb_strbuf *page) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)document};
    const struct nb_html_pictures pictures = {figures, dir, NB_CLAIMS_PLOTS};
    struct nb_strbuf text = {0};
    const cJSON *claim;
    nb_html_head("claims", page);
    nb_meta_footer(&meta, &text);
    nb_strbuf_add(page, "<h1>Claims</h1>\n");
    nb_html_text(page, "<p class=\"dim\">", text.text, "</p>\n");
    nb_strbuf_clear(&text);
    nb_claims_counts(&text, document);
    nb_html_text(page, "<p>", text.text,
                 ". Cuts are 1 - t / t_LN, ratios t_LN / t; intervals are at 95 % over launches.</p>\n");
    nb_strbuf_add(
        page, "<nav><a href=\"#verdicts\">verdicts</a><a href=\"#paper\">the 64 %</a><a href=\"#pictures\">pictures</a>"
              "<a href=\"#evidence\">evidence</a>");
    add_runs(document, page);
    nb_strbuf_add(page, "</nav>\n");
    add_headline(document, page);
    nb_html_figures(&pictures, "amdahl", 1, page);
    add_sentences(document, page);
    nb_strbuf_add(page, "<details id=\"verdicts\"><summary>All figures beside what was published</summary>\n");
    add_summary(document, false, "", page);
    nb_strbuf_add(page, "</details>\n");
    add_summary(document, true, "<h2>Public bug reports: does their input break kernels?</h2>\n", page);
    add_paper(page);
    nb_claims_training_tables(document, true, page);
    nb_strbuf_add(page, "<h2 id=\"pictures\">Pictures</h2>\n");
    nb_html_more_figures(&pictures, "loss-", 0, "Loss while training", page);
    nb_html_not_drawn(figures, page);
    nb_strbuf_add(page, "<h2 id=\"evidence\">Evidence</h2>\n");
    cJSON_ArrayForEach(claim, nb_json_get(document, "claims")) add_claim(claim, page);
    nb_html_end(page);
    nb_strbuf_release(&text);
}

static int write_page(const char *dir, const char *name, struct nb_strbuf *text) {
    char *path = nb_path_join(dir, name);
    const int result = nb_file_write(path, text->text, text->len);
    nb_strbuf_release(text);
    free(path);
    return result;
}

int nb_claims_pages(const char *dir, const cJSON *document, bool plots) {
    const struct nb_results meta = {.meta = (cJSON *)(uintptr_t)document};
    struct nb_figures figures = {0};
    struct nb_strbuf page = {0}, markdown = {0};
    int result = 0;
    nb_strbuf_add(&figures.notes, "");
    nb_claims_amdahl_figure(&figures, document, &meta);
    nb_claims_training_figures(&figures, document, &meta);
    if (plots) result = nb_figures_write(&figures, dir, NB_CLAIMS_PLOTS);
    nb_claims_markdown(document, plots ? &figures : NULL, &markdown);
    if (result == 0) result = write_page(dir, NB_CLAIMS_MARKDOWN, &markdown);
    add_page(document, &figures, dir, &page);
    if (result == 0) result = write_page(dir, NB_CLAIMS_PAGE, &page);
    nb_strbuf_release(&markdown);
    nb_strbuf_release(&page);
    nb_figures_release(&figures);
    return result;
}
