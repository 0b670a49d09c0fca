// SPDX-License-Identifier: Apache-2.0
/* The verdicts on a terminal: a line for each claim, what was measured beside what was published, and why. */
#include <stdio.h>
#include <string.h>

#include "reports/claims/claims_lines.h"
#include "reports/claims/claims_markdown.h"
#include "reports/claims/claims_report.h"
#include "reports/claims/claims_text.h"
#include "reports/text/escape.h"
#include "reports/text/grid.h"
#include "reports/text/output.h"
#include "reports/text/screen.h"
#include "src/claims/verdict.h"
#include "src/core/json.h"

bool nb_claims_format_known(const char *format) {
    return strcmp(format, "table") == 0 || strcmp(format, "markdown") == 0 || strcmp(format, "json") == 0;
}

static enum nb_grid_style style_of(const char *verdict) {
    if (strcmp(verdict, nb_verdict_names[NB_REPRODUCED]) == 0) return NB_GRID_GOOD;
    if (strcmp(verdict, nb_verdict_names[NB_NOT_REPRODUCED]) == 0) return NB_GRID_BAD;
    return strcmp(verdict, nb_verdict_names[NB_PARTLY]) == 0 ? NB_GRID_DOUBTFUL : NB_GRID_PLAIN;
}

static void add_family(const cJSON *document, bool bugs, FILE *out, struct nb_strbuf *text) {
    static const char *const titles[] = {"claim", "verdict", "measured", "published", "why"};
    static const int ranks[] = {NB_GRID_STAYS, NB_GRID_STAYS, 3, 2, 1};
    struct nb_claims_line *lines;
    struct nb_grid grid;
    const size_t n = nb_claims_lines(document, bugs, &lines);
    nb_grid_init(&grid, titles, 5);
    grid.ranks = ranks;
    grid.screen = nb_screen_width(out);
    for (size_t i = 0; i < n; i++) {
        struct nb_strbuf name = {0};
        nb_strbuf_addf(&name, "%s%s", lines[i].reading ? "  " : "", lines[i].name);
        nb_grid_style(&grid, style_of(lines[i].verdict));
        nb_grid_add(&grid, name.text);
        nb_grid_add(&grid, lines[i].verdict);
        nb_grid_add(&grid, lines[i].measured);
        nb_grid_add(&grid, lines[i].published);
        nb_grid_add(&grid, lines[i].why);
        nb_strbuf_release(&name);
    }
    if (n > 0 && bugs) nb_strbuf_add(text, "\nPublic bug reports: does their input break kernels?\n\n");
    if (n > 0) nb_grid_add_table(&grid, nb_screen_color(out), text);
    nb_grid_release(&grid);
    nb_claims_lines_release(lines, n);
}

static void add_sensitivities(const cJSON *document, FILE *out, struct nb_strbuf *text) {
    const cJSON *claim;
    int n = 0;
    cJSON_ArrayForEach(claim, cJSON_GetObjectItemCaseSensitive(document, "claims")) {
        struct nb_strbuf line = {0}, sensed = {0};
        if (!nb_claims_is_bug(claim)) nb_claims_sensitivity(&sensed, claim);
        if (sensed.len > 0) {
            if (n++ == 0) nb_strbuf_add(text, "\nWhat makes or breaks a claim\n");
            nb_strbuf_addf(&line, "%s  %s", nb_claims_text(claim, "id"), sensed.text);
            nb_screen_wrap(text, line.text, nb_screen_width(out), nb_utf8_wanted());
        }
        nb_strbuf_release(&sensed);
        nb_strbuf_release(&line);
    }
}

static void add_table(const cJSON *document, FILE *out, struct nb_strbuf *text) {
    add_family(document, false, out, text);
    add_family(document, true, out, text);
    add_sensitivities(document, out, text);
    nb_strbuf_add(text, "\n");
    nb_claims_counts(text, document);
    nb_strbuf_add(text, ".\ncut = 1 - t / t_LN, ratio = t_LN / t; intervals at 95 % over launches.\n");
    if (!nb_json_get_bool(document, "complete"))
        nb_strbuf_add(text, "The run was cut short: what was not measured is NOT TESTABLE HERE.\n");
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
