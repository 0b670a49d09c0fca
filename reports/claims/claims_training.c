// SPDX-License-Identifier: Apache-2.0
/* Tables of whole steps, of memory and of losses. */
#include "reports/claims/claims_training.h"

#include <math.h>
#include <string.h>

#include "reports/claims/claims_text.h"
#include "reports/run/html.h"
#include "reports/text/grid.h"
#include "src/core/json.h"

enum { MOST_COLUMNS = 8 };
struct table {
    const char *list, *title, *titles[MOST_COLUMNS];
    size_t n_columns;
    void (*add)(struct nb_grid *grid, const cJSON *entry);
};

static void add_text(struct nb_grid *grid, const cJSON *entry, const char *name) {
    const char *text = nb_json_get_text(entry, name);
    nb_grid_add(grid, text ? text : "");
}

/* "1.234 [1.2, 1.3]" of factor times the interval. */
static void add_interval(struct nb_grid *grid, const cJSON *entry, const char *name, double factor, const char *unit) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(entry, name);
    const double value = factor * nb_json_get_number(v, "value"), low = factor * nb_json_get_number(v, "low"),
                 high = factor * nb_json_get_number(v, "high");
    struct nb_strbuf text = {0};
    if (isnan(value))
        nb_strbuf_add(&text, "not measured");
    else if (isnan(low))
        nb_strbuf_addf(&text, "%.4g%s", value, unit);
    else
        nb_strbuf_addf(&text, "%.4g%s [%.4g, %.4g]", value, unit, low, high);
    nb_grid_add(grid, text.text);
    nb_strbuf_release(&text);
}

static void add_number(struct nb_grid *grid, const cJSON *entry, const char *name, double factor, const char *unit) {
    struct nb_strbuf text = {0};
    nb_strbuf_addf(&text, "%.4g%s", factor * nb_json_get_number(entry, name), unit);
    nb_grid_add(grid, text.text);
    nb_strbuf_release(&text);
}

static void add_steps(struct nb_grid *grid, const cJSON *entry) {
    add_interval(grid, entry, "seconds", 1e3, " ms");
    add_interval(grid, entry, "passes", 1e3, " ms");
    add_interval(grid, entry, "norm_share", 100, " %");
    add_interval(grid, entry, "step_share", 100, " %");
    if (nb_json_get_text(entry, "against"))
        add_interval(grid, entry, "cut", 100, " %");
    else
        nb_grid_add(grid, "");
    add_number(grid, entry, "launches", 1, "");
}
static void add_memory(struct nb_grid *grid, const cJSON *entry) {
    add_interval(grid, entry, "peak_bytes", 0x1p-20, " MiB");
    add_number(grid, entry, "kept_bytes", 0x1p-20, " MiB");
    add_number(grid, entry, "parameter_bytes", 0x1p-20, " MiB");
    add_number(grid, entry, "launches", 1, "");
}
static void add_course(struct nb_grid *grid, const cJSON *entry) {
    add_number(grid, entry, "steps", 1, "");
    add_interval(grid, entry, "final_loss", 1, "");
    add_number(grid, entry, "seeds", 1, "");
}

static const struct table tables[] = {
    {"steps",
     "Whole training steps",
     {"model", "arm", "step", "forward and backward", "norm's share of them", "norm's share of the step",
      "cut of the step against LayerNorm", "launches"},
     8,
     add_steps},
    {"memory",
     "Memory of a process that trains",
     {"model", "arm", "peak", "kept for backward", "parameters", "launches"},
     6,
     add_memory},
    {"courses", "Losses after training", {"model", "arm", "steps", "loss of the last tenth", "seeds"}, 5, add_course}};

/* False: the list is empty. */
static bool fill(struct nb_grid *grid, const struct table *t, const cJSON *document) {
    const cJSON *training = cJSON_GetObjectItemCaseSensitive(document, "training"), *entry;
    nb_grid_init(grid, t->titles, t->n_columns);
    cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(training, t->list)) {
        add_text(grid, entry, "workload");
        add_text(grid, entry, "arm");
        t->add(grid, entry);
    }
    return grid->n_cells > 0;
}

static const char lead[] =
    "Arms of a model take turns step by step in one process, in drawn orders each followed by its reverse. Memory is "
    "of "
    "fresh processes. Losses are of trainings that start from the same weights and see the same batches; intervals are "
    "over launches or seeds, at 95 %.";

/* "speed-minimind-training" tries whether few tokens a step stand for many; what it found, or "". */
static void add_tokens(const cJSON *document, struct nb_strbuf *out) {
    const cJSON *figures = nb_claims_figures(document, "speed-minimind-training", "tokens"), *figure;
    cJSON_ArrayForEach(figure, figures) {
        const char *label = nb_claims_text(figure, "label");
        if (!*label) continue;
        nb_strbuf_addf(
            out,
            "Steps here have fewer tokens than published ones. The norm's share of forward and backward is %s "
            "(MiniMind2-Small, LayerNorm op by op); that it changes by at most 2 points %s.",
            label, nb_claims_text(figure, "outcome"));
    }
    nb_strbuf_add(out, "");
}

void nb_claims_training_markdown(const cJSON *document, struct nb_strbuf *out) {
    bool first = true;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        struct nb_grid grid;
        if (fill(&grid, &tables[i], document)) {
            if (first) {
                nb_strbuf_addf(out, "\n## Training\n\n%s\n\n", lead);
                add_tokens(document, out);
                nb_strbuf_add(out, "\n");
            }
            first = false;
            nb_strbuf_addf(out, "\n### %s\n\n", tables[i].title);
            nb_grid_add_markdown(&grid, out);
        }
        nb_grid_release(&grid);
    }
}

static void add_html(const struct nb_grid *grid, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<div class=\"wrap\"><table>\n<tr>");
    for (size_t c = 0; c < grid->n_columns; c++) nb_html_text(out, "<th>", grid->titles[c], "</th>");
    for (size_t c = 0; c < grid->n_cells; c++) {
        if (c % grid->n_columns == 0) nb_strbuf_add(out, "</tr>\n<tr>");
        nb_strbuf_add(out, "<td>");
        nb_html_text(out, "", grid->cells[c], "");
        nb_strbuf_add(out, "</td>");
    }
    nb_strbuf_add(out, "</tr>\n</table></div>\n");
}

void nb_claims_training_html(const cJSON *document, struct nb_strbuf *out) {
    bool first = true;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        struct nb_grid grid;
        if (fill(&grid, &tables[i], document)) {
            if (first) {
                struct nb_strbuf tokens = {0};
                add_tokens(document, &tokens);
                nb_html_text(out, "<h2 id=\"training\">Training</h2>\n<p>", lead, "</p>\n");
                nb_html_text(out, "<p>", tokens.text, "</p>\n");
                nb_strbuf_release(&tokens);
            }
            first = false;
            nb_html_text(out, "<h3>", tables[i].title, "</h3>\n");
            add_html(&grid, out);
        }
        nb_grid_release(&grid);
    }
}
