// SPDX-License-Identifier: Apache-2.0
/* What RMSNorm would save in a step of a model, from the document (src/models/step.h): the answer in one sentence, what the step
 * consists of, which cost of dispatch would change it, and what was timed and what scaled. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "reports/text/output.h"
#include "src/core/format.h"
#include "src/core/json.h"
#include "src/core/log.h"

/* ---- numbers ---- */

static void add_interval(struct nb_strbuf *out, struct nb_interval i, const char *unit) {
    isnan(i.value) ? nb_strbuf_add(out, "-") : nb_format_interval(out, i, unit);
}

static void add_percent(struct nb_strbuf *out, const cJSON *json, const char *name) {
    add_interval(out, nb_interval_times(nb_json_get_interval(json, name), 100), "%");
}

static void add_seconds(struct nb_strbuf *out, struct nb_interval s) {
    isnan(s.value) ? nb_strbuf_add(out, "-") : nb_format_time(out, 1e9 * s.value);
}

static const char *style_name(const cJSON *pair) {
    const char *style = nb_json_get_string(pair, "style");
    return strcmp(style, "plugin")
               ? nb_tag_word(style)
               : nb_json_get_string(pair, strchr(nb_json_get_string(pair, "of"), ':') ? "of" : "against");
}

/* ---- the answer ---- */

static void add_model(struct nb_strbuf *out, const cJSON *model) {
    const double tokens = nb_json_get_number(model, "tokens"), context = nb_json_get_number(model, "context");
    if (nb_json_is(model, "work", "training"))
        nb_strbuf_addf(out, "a training step of %s (%.0f tokens)", nb_json_get_string(model, "name"), tokens);
    else if (tokens == 1)
        nb_strbuf_addf(out, "one token of %s", nb_json_get_string(model, "name"));
    else
        nb_strbuf_addf(out, "a forward pass of %s (%.0f tokens)", nb_json_get_string(model, "name"), tokens);
    if (tokens == 1 && context > 1) nb_strbuf_addf(out, " (%.0f cached)", context - 1);
}

/* Of our own norms; null where every figure is known. */
static const char *why_none(const cJSON *document) {
    const cJSON *pair;
    cJSON_ArrayForEach(pair, nb_json_get(document, "pairs")) {
        const char *reason = nb_json_get_text(pair, "reason");
        if (reason && !nb_json_is(pair, "style", "plugin")) return reason;
    }
    return NULL;
}

static void add_answer(struct nb_strbuf *out, const cJSON *document) {
    const char *reason = why_none(document);
    const cJSON *pair;
    int n = 0;
    nb_strbuf_add(out, reason ? "What RMSNorm would save in " : "In ");
    add_model(out, nb_json_get(document, "model"));
    nb_strbuf_addf(out, reason ? " is not known here: %s." : " RMSNorm would save ", reason);
    cJSON_ArrayForEach(pair, nb_json_get(document, "pairs")) {
        if (reason || nb_json_is(pair, "style", "plugin")) continue;
        nb_strbuf_add(out, n++ ? ", " : "");
        add_percent(out, pair, "cut");
        nb_strbuf_addf(out, " %s", style_name(pair));
    }
    if (!reason) nb_strbuf_add(out, ", compared with LayerNorm, here (one thread of this CPU, f32).");
}

/* ---- the table ---- */

enum { MOST_COLUMNS = 5 };

struct table {
    struct nb_grid grid;
    const cJSON *pairs[MOST_COLUMNS];
    const char *titles[MOST_COLUMNS + 1];
    int n;
};

typedef void add_cell(struct nb_strbuf *out, const cJSON *pair, const void *context);

static void add_row(struct table *t, const char *label, add_cell *cell, const void *context) {
    nb_grid_add(&t->grid, label);
    for (int i = 0; i < t->n; i++) {
        cell(&t->grid.cell, t->pairs[i], context);
        nb_grid_end_cell(&t->grid);
    }
}

static void seconds_cell(struct nb_strbuf *out, const cJSON *pair, const void *name) {
    add_seconds(out, nb_json_get_interval(pair, name));
}

static void percent_cell(struct nb_strbuf *out, const cJSON *pair, const void *name) { add_percent(out, pair, name); }

static void add_share(struct nb_strbuf *out, double part, double whole) {
    const double percent = 100 * part / whole;
    if (isnan(percent))
        nb_strbuf_add(out, "-");
    else
        nb_strbuf_addf(out, fabs(percent) < 1 ? "%.2g%%" : "%.1f%%", percent);
}

static void part_cell(struct nb_strbuf *out, const cJSON *pair, const void *name) {
    add_share(out, nb_json_get_interval(pair, name).value, nb_json_get_interval(pair, "step_s").value);
}

static void saved_cell(struct nb_strbuf *out, const cJSON *pair, const void *unused) {
    add_share(out, nb_json_get_interval(pair, "saved_s").value, nb_json_get_interval(pair, "norms_s").value);
}

static void count_cell(struct nb_strbuf *out, const cJSON *pair, const void *name) {
    nb_strbuf_addf(out, "%.0f", nb_json_get_number(pair, name));
}

static void limit_cell(struct nb_strbuf *out, const cJSON *pair, const void *unused) {
    add_share(out, nb_json_get_number(pair, "limit"), 1);
}

static void needed_cell(struct nb_strbuf *out, const cJSON *pair, const void *index) {
    const cJSON *one = cJSON_GetArrayItem(nb_json_get(pair, "dispatch"), *(const int *)index);
    const struct nb_interval d = nb_json_get_interval(one, "seconds");
    if (nb_json_get_bool(one, "never"))
        nb_strbuf_add(out, "never");
    else if (d.value == 0)
        nb_strbuf_add(out, "any");
    else
        add_seconds(out, d);
}

static void add_table(const struct nb_page *page, const cJSON *document) {
    struct table t = {.titles = {"with LayerNorm"}};
    const cJSON *pair;
    cJSON_ArrayForEach(pair, nb_json_get(document, "pairs")) {
        if (t.n == MOST_COLUMNS) break;
        t.titles[t.n + 1] = style_name(pair);
        t.pairs[t.n++] = pair;
    }
    nb_grid_init(&t.grid, t.titles, (size_t)t.n + 1);
    t.grid.screen = page->screen;
    add_row(&t, "step", seconds_cell, "step_s");
    add_row(&t, "  products", part_cell, "products_s");
    add_row(&t, "  bytes moved", part_cell, "moved_s");
    add_row(&t, "  norms", percent_cell, "share");
    add_row(&t, "RMSNorm saves of the norms", saved_cell, NULL);
    add_row(&t, "  of the step", percent_cell, "cut");
    for (int i = 0; i < cJSON_GetArraySize(nb_json_get(t.pairs[0], "dispatch")); i++) {
        const cJSON *one = cJSON_GetArrayItem(nb_json_get(t.pairs[0], "dispatch"), i);
        char label[64];
        snprintf(label, sizeof label, "  %.0f%% if a dispatch costs", 100 * nb_json_get_number(one, "cut"));
        add_row(&t, label, needed_cell, &i);
    }
    add_row(&t, "  at most, by dispatch alone", limit_cell, NULL);
    add_row(&t, "operations dispatched", count_cell, "dispatches");
    add_row(&t, "  of its norms", count_cell, "norm_dispatches");
    add_row(&t, "  of RMSNorm in their place", count_cell, "of_norm_dispatches");
    nb_page_grid(page, &t.grid);
}

/* ---- what was timed and what was scaled ---- */

static void add_products(struct nb_strbuf *out, const cJSON *rates) {
    const cJSON *product, *check = nb_json_get(rates, "check");
    int n = 0, scaled = 0;
    cJSON_ArrayForEach(product, nb_json_get(rates, "products")) {
        n++;
        scaled += nb_json_get_number(product, "rows") != nb_json_get_number(product, "timed_rows") ||
                  nb_json_get_number(product, "inner") != nb_json_get_number(product, "timed_inner") ||
                  nb_json_get_number(product, "cols") != nb_json_get_number(product, "timed_cols");
    }
    nb_strbuf_addf(out,
                   "Timed in %.0f processes: %d products (OpenBLAS), %d of them at fewer rows or columns and scaled.",
                   nb_json_get_number(rates, "launches"), n, scaled);
    const cJSON *checked = cJSON_GetArrayItem(nb_json_get(rates, "products"), nb_json_get_index(check, "product"));
    if (!checked || isnan(nb_json_get_interval(check, "ratio").value)) return;
    nb_strbuf_addf(out, " Scaling: %.0fx%.0fx%.0f of %.0fx%.0fx%.0f took ", nb_json_get_number(check, "rows"),
                   nb_json_get_number(check, "inner"), nb_json_get_number(check, "cols"),
                   nb_json_get_number(checked, "rows"), nb_json_get_number(checked, "inner"),
                   nb_json_get_number(checked, "cols"));
    add_interval(out, nb_json_get_interval(check, "ratio"), "");
    nb_strbuf_add(out, " times what was scaled.");
}

static void add_norms(struct nb_strbuf *out, const cJSON *document) {
    const cJSON *norm, *norms = nb_json_get(cJSON_GetArrayItem(nb_json_get(document, "pairs"), 0), "norms");
    cJSON_ArrayForEach(norm, norms) {
        const double rows = nb_json_get_number(norm, "rows"), timed = nb_json_get_number(norm, "timed_rows");
        if (rows != timed && nb_json_is(norm, "pass", "forward"))
            nb_strbuf_addf(out, " Norms of %.0fx%.0f were timed at %.0f rows and scaled.", rows,
                           nb_json_get_number(norm, "cols"), timed);
    }
}

static void add_copies(struct nb_strbuf *out, const cJSON *rates) {
    const cJSON *copies = nb_json_get(rates, "copies"), *first = cJSON_GetArrayItem(copies, 0),
                *last = cJSON_GetArrayItem(copies, cJSON_GetArraySize(copies) - 1);
    nb_strbuf_addf(
        out,
        "All else costs its bytes at the speed of a copy of as many: %.3g GB/s of %.0f KiB, %.3g GB/s of %.0f MiB. "
        "An operation on 16 numbers takes ",
        1e-9 / nb_json_get_interval(first, "s_a_byte").value, nb_json_get_number(first, "bytes") / 1024,
        1e-9 / nb_json_get_interval(last, "s_a_byte").value, nb_json_get_number(last, "bytes") / (1024 * 1024));
    add_seconds(out, nb_json_get_interval(rates, "call_s"));
    nb_strbuf_add(out, " here.");
}

static void add_page(const struct nb_page *page, const cJSON *document) {
    const cJSON *rates = nb_json_get(document, "rates");
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    add_answer(&text, document);
    nb_page_tell(page, &text);
    add_table(page, document);
    if (nb_json_get_number(rates, "launches") == 0) return;
    add_products(&text, rates);
    add_norms(&text, document);
    nb_page_tell(page, &text);
    add_copies(&text, rates);
    nb_page_tell(page, &text);
}

int nb_model_answer_print(const cJSON *document, const char *format, FILE *out) {
    struct nb_strbuf text = {0};
    if (strcmp(format, "json") == 0) return nb_output_document(document, out);
    const struct nb_page page = nb_page_for(out, strcmp(format, "markdown") == 0, &text);
    add_page(&page, document);
    return nb_output(&text, out);
}
