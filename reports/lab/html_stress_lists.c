// SPDX-License-Identifier: Apache-2.0
/* What searches found, and who survives the inputs of public bug reports. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "reports/lab/html_stress.h"
#include "reports/run/html.h"
#include "reports/text/format.h"
#include "src/core/json.h"

/* ---- frontiers ---- */

/* What was searched: a limit, the absence of one, or nothing right to begin with. */
static void add_limit(const cJSON *frontier, const char *which, struct nb_strbuf *out) {
    const char *status = nb_stress_cell_text(frontier, "status");
    if (strcmp(status, "none") == 0)
        nb_stress_cell(out, "n", strcmp(which, "bad") == 0 ? "" : "no limit");
    else if (strcmp(status, "never") == 0)
        nb_stress_cell(out, "n", strcmp(which, "bad") == 0 ? "" : "never");
    else
        nb_stress_number(out, nb_json_get_number(frontier, which), 5);
}

static void add_frontier(const cJSON *study, const cJSON *frontier, struct nb_strbuf *out) {
    const double ratio = nb_json_get_number(frontier, "ratio");
    const bool off = ratio > 4 || ratio < 0.25;
    nb_strbuf_add(out, off ? "<tr class=\"doubt\">" : "<tr>");
    nb_stress_cell(out, "k", nb_stress_cell_text(study, "variant"));
    nb_stress_cell(out, "t", nb_stress_cell_text(frontier, "of"));
    nb_stress_cell(out, "t", nb_stress_cell_text(frontier, "demand"));
    add_limit(frontier, "good", out);
    add_limit(frontier, "bad", out);
    nb_stress_number(out, nb_json_get_number(frontier, "predicted"), 5);
    nb_stress_number(out, ratio, 3);
    nb_stress_cell(out, "w", nb_stress_cell_text(frontier, "rule"));
    nb_strbuf_add(out, "</tr>\n");
}

void nb_html_frontiers(const cJSON *stress, struct nb_strbuf *out) {
    const cJSON *study, *frontier;
    bool any = false;
    cJSON_ArrayForEach(study, cJSON_GetObjectItemCaseSensitive(stress, "studies")) {
        cJSON_ArrayForEach(frontier, cJSON_GetObjectItemCaseSensitive(study, "frontiers")) {
            if (strcmp(nb_stress_cell_text(frontier, "status"), "does_not_apply") == 0) continue;
            if (!any)
                nb_strbuf_add(
                    out,
                    "<h2 id=\"frontiers\">How far each can be taken</h2>\n<p class=\"dim\">The last value that is "
                    "right and the first that is not, found by bisection, beside the closed form. A ratio far "
                    "from 1 means that the theory or the kernel is not what it is taken for.</p>\n<details open>"
                    "<summary>Frontiers</summary><div class=\"wrap\"><table>\n<tr><th>variant</th><th>frontier</th>"
                    "<th>demand</th><th class=\"n\">holds to</th><th class=\"n\">fails at</th><th class=\"n\">"
                    "predicted</th><th class=\"n\">ratio</th><th>predicted by</th></tr>\n");
            any = true;
            add_frontier(study, frontier, out);
        }
    }
    if (any) nb_strbuf_add(out, "</table></div></details>\n");
}

/* ---- worst rows ---- */

static void add_worst(const cJSON *study, const cJSON *worst, struct nb_strbuf *out) {
    nb_strbuf_add(out,
                  cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(worst, "violation")) ? "<tr class=\"bad\">" : "<tr>");
    nb_stress_cell(out, "k", nb_stress_cell_text(study, "variant"));
    nb_stress_cell(out, "t", nb_stress_cell_text(worst, "objective"));
    nb_stress_number(out, nb_json_get_number(worst, "value"), 4);
    nb_stress_number(out, nb_json_get_number(worst, "scaled_ulp"), 4);
    nb_stress_cell(out, "t", nb_stress_cell_text(worst, "generator"));
    nb_html_text(out, "<td class=\"w\"><code>", nb_stress_cell_text(worst, "replay"), "</code></td>");
    nb_strbuf_add(out, "</tr>\n");
}

void nb_html_worst(const cJSON *stress, struct nb_strbuf *out) {
    const cJSON *study, *worst;
    bool any = false;
    cJSON_ArrayForEach(study, cJSON_GetObjectItemCaseSensitive(stress, "studies")) {
        cJSON_ArrayForEach(worst, cJSON_GetObjectItemCaseSensitive(study, "worst")) {
            if (!isfinite(nb_json_get_number(worst, "value"))) continue;
            if (!any)
                nb_strbuf_add(out, "<h2 id=\"worst\">Worst rows found</h2>\n<p class=\"dim\">By greedy rows along the "
                                   "kernel's own order of summation, by order, by zooming in and by climbing, within "
                                   "the rows that the kernel claims its accuracy for.</p>\n<details><summary>Rows"
                                   "</summary><div class=\"wrap\"><table>\n<tr><th>variant</th><th>objective</th>"
                                   "<th class=\"n\">value</th><th class=\"n\">ulp, scaled</th><th>generator</th>"
                                   "<th>again</th></tr>\n");
            any = true;
            add_worst(study, worst, out);
        }
    }
    if (any) nb_strbuf_add(out, "</table></div></details>\n");
}

/* ---- public bugs ---- */

static bool is_named_before(const cJSON *list, const cJSON *until, const char *kernel) {
    for (const cJSON *who = list->child; who && who != until; who = who->next)
        if (strcmp(nb_stress_cell_text(who, "kernel"), kernel) == 0) return true;
    return false;
}

/* Each kernel once; its variants, formulas and figures unfold. */
static void add_who(const cJSON *list, struct nb_strbuf *out) {
    const cJSON *who;
    bool first = true;
    nb_strbuf_addf(out, "<td class=\"w\"><details><summary>%d: ", cJSON_GetArraySize(list));
    cJSON_ArrayForEach(who, list) {
        const char *kernel = nb_stress_cell_text(who, "kernel");
        if (is_named_before(list, who, kernel)) continue;
        nb_html_text(out, first ? "" : ", ", *kernel ? kernel : nb_stress_cell_text(who, "variant"), "");
        first = false;
    }
    nb_strbuf_add(out, first ? "none</summary>" : "</summary><ul>\n");
    cJSON_ArrayForEach(who, list) {
        nb_strbuf_add(out, "<li>");
        nb_html_text(out, "<b>", nb_stress_cell_text(who, "grade"), "</b> ");
        nb_html_text(out, "<code>", nb_stress_cell_text(who, "variant"), "</code> ");
        if (strcmp(nb_stress_cell_text(who, "formula"), "default") != 0)
            nb_html_text(out, "", nb_stress_cell_text(who, "formula"), " ");
        nb_html_text(out, "", nb_stress_cell_text(who, "text"), "");
        nb_strbuf_add(out, "</li>\n");
    }
    nb_strbuf_add(out, first ? "</details></td>" : "</ul></details></td>");
}

void nb_html_bugs(const cJSON *stress, struct nb_strbuf *out) {
    const cJSON *bug, *bugs = cJSON_GetObjectItemCaseSensitive(stress, "bugs");
    if (cJSON_GetArraySize(bugs) == 0) return;
    nb_strbuf_add(
        out, "<h2 id=\"bugs\">Inputs of public bug reports</h2>\n<p class=\"dim\">Grades D and F fail, C and better "
             "survive.</p>\n<div class=\"wrap\"><table>\n<tr><th>report</th><th>essence</th><th>fail</th>"
             "<th>survive</th><th>worst, and how to see it</th></tr>\n");
    cJSON_ArrayForEach(bug, bugs) {
        const cJSON *worst = cJSON_GetObjectItemCaseSensitive(bug, "worst");
        nb_strbuf_add(out, "<tr>");
        nb_stress_cell(out, "t", nb_stress_cell_text(bug, "label"));
        nb_stress_cell(out, "w", nb_stress_cell_text(bug, "text"));
        add_who(cJSON_GetObjectItemCaseSensitive(bug, "failed"), out);
        add_who(cJSON_GetObjectItemCaseSensitive(bug, "survived"), out);
        nb_html_text(out, "<td class=\"w\">", nb_stress_cell_text(worst, "text"), "");
        if (!*nb_stress_cell_text(worst, "text")) nb_strbuf_add(out, "<td>");
        nb_html_text(out, "<br><code>", nb_stress_cell_text(worst, "replay"), "</code>");
        nb_strbuf_add(out, "</td></tr>\n");
    }
    nb_strbuf_add(out, "</table></div>\n");
}
