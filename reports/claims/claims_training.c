// SPDX-License-Identifier: Apache-2.0
/* Tables of whole steps, of memory and of losses, and curves. */
#include "reports/claims/claims_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "reports/text/escape.h"
#include "reports/text/grid.h"
#include "src/core/json.h"
#include "src/core/log.h"

enum { MOST_COLUMNS = 9 };
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
    const cJSON *v = nb_json_get(entry, name);
    const double value = factor * nb_json_get_number(v, "value"), low = factor * nb_json_get_number(v, "low"),
                 high = factor * nb_json_get_number(v, "high");
    if (isnan(value))
        nb_strbuf_add(&grid->cell, "not measured");
    else if (isnan(low))
        nb_strbuf_addf(&grid->cell, "%.4g%s", value, unit);
    else
        nb_strbuf_addf(&grid->cell, "%.4g%s [%.4g, %.4g]", value, unit, low, high);
    nb_grid_end_cell(grid);
}

static void add_number(struct nb_grid *grid, const cJSON *entry, const char *name, double factor, const char *unit) {
    nb_grid_addf(grid, "%.4g%s", factor * nb_json_get_number(entry, name), unit);
}

static void add_steps(struct nb_grid *grid, const cJSON *entry) {
    add_interval(grid, entry, "seconds", 1e3, " ms");
    add_interval(grid, entry, "passes", 1e3, " ms");
    add_interval(grid, entry, "norm_share", 100, " %");
    add_interval(grid, entry, "step_share", 100, " %");
    const bool compared = nb_json_get_text(entry, "against") != NULL;
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "cut" : "elsewhere";
        if (compared)
            add_interval(grid, entry, name, 100, " %");
        else
            nb_grid_add(grid, "");
    }
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
      "cut of the step against LayerNorm", "difference elsewhere", "launches"},
     9,
     add_steps},
    {"memory",
     "Memory of a process that trains",
     {"model", "arm", "peak", "kept for backward", "parameters", "launches"},
     6,
     add_memory},
    {"courses", "Losses after training", {"model", "arm", "steps", "loss of the last tenth", "seeds"}, 5, add_course}};

/* False: the list is empty. */
static bool fill(struct nb_grid *grid, const struct table *t, const cJSON *document) {
    const cJSON *training = nb_json_get(document, "training"), *entry;
    nb_grid_init(grid, t->titles, t->n_columns);
    cJSON_ArrayForEach(entry, nb_json_get(training, t->list)) {
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
    "over launches or seeds, at 95 %. The cut of a step is what its norms save: the time in the norms of both arms, over the "
    "step with LayerNorm; what differs elsewhere is no work of the norm, and noise where its interval contains 0.";

/* "speed-minimind-training" tries whether few tokens a step represent many; what it found, or "". */
static void add_tokens(const cJSON *document, struct nb_strbuf *out) {
    const cJSON *figures = nb_claims_figures(document, "speed-minimind-training", "tokens"), *figure;
    cJSON_ArrayForEach(figure, figures) {
        const char *label = nb_json_get_string(figure, "label");
        if (!*label) continue;
        nb_strbuf_addf(
            out,
            "Steps here have fewer tokens than published ones. The norm's share of forward and backward is %s "
            "(MiniMind2-Small, LayerNorm op by op); that it changes by at most a fifth %s.",
            label, nb_json_get_string(figure, "outcome"));
    }
    nb_strbuf_add(out, "");
}

static bool is_empty_column(const struct nb_grid *grid, size_t column) {
    for (size_t c = column; c < grid->n_cells; c += grid->n_columns)
        if (*grid->cells[c]) return false;
    return true;
}

/* Without the columns that nothing was measured for. */
void nb_claims_grid_html(const struct nb_grid *grid, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<div class=wrap><table>\n<tr>");
    for (size_t c = 0; c < grid->n_columns; c++)
        if (!is_empty_column(grid, c)) nb_html_text(out, "<th>", grid->titles[c], "");
    for (size_t c = 0; c < grid->n_cells; c++) {
        if (c % grid->n_columns == 0) nb_strbuf_add(out, "\n<tr>");
        if (!is_empty_column(grid, c % grid->n_columns)) nb_html_cell(out, "", grid->cells[c]);
    }
    nb_strbuf_add(out, "\n</table></div>\n");
}

static void add_lead(const cJSON *document, bool html, struct nb_strbuf *out) {
    struct nb_strbuf tokens = {0};
    add_tokens(document, &tokens);
    if (html) {
        nb_strbuf_add(out, "<h2 id=\"training\">Training</h2>\n");
        nb_html_text(out, "<p>", lead, "</p>\n");
        nb_html_text(out, "<p>", tokens.text, "</p>\n");
    } else {
        nb_strbuf_addf(out, "\n## Training\n\n%s\n\n", lead);
        nb_escape_markdown(out, tokens.text);
        nb_strbuf_add(out, "\n");
    }
    nb_strbuf_release(&tokens);
}

static void add_table(const struct table *t, const struct nb_grid *grid, bool html, struct nb_strbuf *out) {
    if (html) {
        nb_html_text(out, "<h3>", t->title, "</h3>\n");
        nb_claims_grid_html(grid, out);
    } else {
        nb_strbuf_addf(out, "\n### %s\n\n", t->title);
        nb_grid_add_markdown(grid, out);
    }
}

/* ---- at which cost of dispatch published cuts are reached ---- */

static const cJSON *regimes(const cJSON *document) { return nb_json_get(nb_json_get(document, "training"), "regime"); }

static const char regime_lead[] =
    "The publications ran frameworks that launch one operation at a time on a GPU, where each costs its dispatch, some microseconds, whatever "
    "its size. A model of that: every operation of a step, counted in the models here, costs d besides its work; products and all else take the "
    "time measured here, or that of the publication's GPU by its peak rates. Steps that really spend d (dispatch= in the table of steps) check "
    "it.";

static void add_regime_sentence(const cJSON *of, bool html, struct nb_strbuf *out) {
    nb_strbuf_add(out, html ? "<li>" : "- ");
    if (html)
        nb_html_text(out, "", nb_json_get_string(of, "sentence"), "</li>\n");
    else
        nb_escape_markdown(out, nb_json_get_string(of, "sentence"));
    if (!html) nb_strbuf_add(out, "\n");
}

static const cJSON *eager_of(const cJSON *document) { return nb_json_get(nb_json_get(document, "training"), "eager"); }

static void add_regime(const cJSON *document, bool html, struct nb_strbuf *out) {
    const cJSON *row;
    if (!regimes(document) || !regimes(document)->child) return;
    if (html)
        nb_html_text(out, "<h3 id=\"dispatch\">What a published cut needs (a model)</h3>\n<p>", regime_lead,
                     "</p>\n<ul>\n");
    else
        nb_strbuf_addf(out, "\n### What a published cut needs (a model)\n\n%s\n\n", regime_lead);
    if (eager_of(document)) add_regime_sentence(eager_of(document), html, out);
    cJSON_ArrayForEach(row, regimes(document)) add_regime_sentence(row, html, out);
    if (html) nb_strbuf_add(out, "</ul>\n");
}

static const cJSON *workload_before(const cJSON *all, const cJSON *row) {
    const cJSON *other;
    cJSON_ArrayForEach(other, all) {
        if (other == row) return NULL;
        if (nb_json_same_text(other, row, "workload") && nb_json_same_text(other, row, "part")) return other;
    }
    return NULL;
}

enum { HERE, THERE, MOST_DISPATCH_US = 20 };

/* The published value as a line in the band of its interval, and a mark where the curve meets it. */
static void draw_row(struct nb_figure *f, const cJSON *row) {
    const struct nb_interval published = nb_json_get_interval(row, "published");
    char label[160];
    snprintf(label, sizeof label, "published: %s", nb_json_get_string(row, "row"));
    const size_t entry = nb_figure_entry(f, label);
    for (size_t panel = HERE; panel <= THERE; panel++) {
        const double d = nb_json_get_interval(row, panel == HERE ? "needed_here_us" : "needed_there_us").value;
        nb_figure_add_law(f, panel, entry, 0, 100 * published.value);
        nb_figure_add_law(f, panel, entry, MOST_DISPATCH_US, 100 * published.value);
        if (f->n_bands < NB_FIGURE_BANDS)
            f->bands[f->n_bands++] = (struct nb_band){panel, entry, 100 * published.low, 100 * published.high};
        if (d > 0 && d <= MOST_DISPATCH_US)
            nb_figure_add(f, panel, entry, (struct nb_point){d, 100 * published.value, NAN, NAN});
    }
}

static void draw_curves(struct nb_figure *f, const cJSON *row) {
    char label[160];
    const cJSON *curve, *point;
    size_t panel = HERE;
    const char *arm = nb_json_get_string(row, "arm");
    snprintf(label, sizeof label, "model: %.*s against layernorm", (int)strcspn(arm, " "), arm);
    const size_t entry = nb_figure_entry(f, label);
    cJSON_ArrayForEach(curve, nb_json_get(row, "curves")) {
        cJSON_ArrayForEach(point, nb_json_get(curve, "points")) nb_figure_add_law(
            f, panel, entry, nb_json_get_number(point, "dispatch_us"), 100 * nb_json_get_interval(point, "cut").value);
        panel = THERE;
    }
}

/* Steps that spent the dispatch. */
static void draw_spent(struct nb_figure *f, const cJSON *document, const char *workload) {
    const cJSON *training = nb_json_get(document, "training"), *entry;
    cJSON_ArrayForEach(entry, nb_json_get(training, "steps")) {
        const char *arm = nb_json_get_string(entry, "arm"), *word = strstr(arm, " dispatch=");
        const struct nb_interval cut = nb_json_get_interval(entry, "cut");
        if (!word || !nb_json_is(entry, "workload", workload) || !isfinite(cut.value) ||
            strncmp(arm, "rmsnorm", 7) != 0)
            continue;
        nb_figure_add(f, HERE, nb_figure_entry(f, "spent, on a smaller step"),
                      (struct nb_point){strtod(word + 10, NULL), 100 * cut.value, 100 * cut.low, 100 * cut.high});
    }
}

static void draw_regime(struct nb_figures *figures, const struct nb_results *meta, const cJSON *document,
                        const cJSON *first) {
    const char *workload = nb_json_get_string(first, "workload"), *part = nb_json_get_string(first, "part");
    const cJSON *row;
    struct nb_figure *f = nb_figures_new(figures, meta, nb_textf("dispatch-%s-%s", workload, part));
    f->title = nb_strdup("What RMSNorm saves of a step, by what an operation's dispatch costs");
    f->subtitle = nb_textf("%s, %s: a model from what was measured here", workload, part);
    f->caption = nb_strdup(
        "Bands: the published cut and its interval at 95 %. Dashed: the model, by what it costs to dispatch an operation. A "
        "mark stands where the model reaches the published cut; without one it is reached without any dispatch, or not "
        "within 20 us. Points with bars: steps that really waited so long at each operation. Left with the products and "
        "the memory of this CPU, right with those of the publication's GPU, by its peak rates.");
    f->scattered = true;
    f->n_panels = 2;
    f->panels[HERE] = (struct nb_panel){"as here", "dispatch of an operation, us", "time of the step saved",
                                        NB_SCALE_LINEAR, NB_SCALE_PERCENT};
    f->panels[THERE] = (struct nb_panel){nb_json_get_string(first, "gpu"), "dispatch of an operation, us",
                                         "time of the step saved", NB_SCALE_LINEAR, NB_SCALE_PERCENT};
    const double eager_us = nb_json_get_interval(eager_of(document), "dispatch_us").value;
    if (isfinite(eager_us))
        f->guides[f->n_guides++] =
            (struct nb_guide){.x = eager_us, .label = "PyTorch on this CPU", .upright = true, .panel = HERE};
    draw_spent(f, document, workload);
    cJSON_ArrayForEach(row, regimes(document)) {
        if (row != first && workload_before(regimes(document), row) != first) continue;
        draw_curves(f, row);
        draw_row(f, row);
    }
    nb_figure_sort(f);
    nb_figure_sort_laws(f);
}

void nb_claims_training_tables(const cJSON *document, bool html, struct nb_strbuf *out) {
    bool first = true;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        struct nb_grid grid;
        if (fill(&grid, &tables[i], document)) {
            if (first) add_lead(document, html, out);
            first = false;
            add_table(&tables[i], &grid, html, out);
        }
        nb_grid_release(&grid);
    }
    add_regime(document, html, out);
}

/* ---- curves: losses by step, and the standard deviation of activations and gradients by layer, at the start and at the end ---- */

enum { MOST_FIGURES = 12 };

static const cJSON *courses(const cJSON *document) { return nb_json_get(nb_json_get(document, "training"), "courses"); }

static bool same_course(const cJSON *a, const cJSON *b) {
    return nb_json_same_text(a, b, "workload") && nb_json_get_number(a, "steps") == nb_json_get_number(b, "steps");
}

static bool is_first(const cJSON *all, const cJSON *course) {
    const cJSON *other;
    cJSON_ArrayForEach(other, all) {
        if (other == course) return true;
        if (same_course(other, course)) return false;
    }
    return true;
}

static struct nb_figure *new_figure(struct nb_figures *figures, const struct nb_results *meta, const cJSON *course,
                                    const char *what, const char *title) {
    const char *workload = nb_json_get_string(course, "workload");
    const double steps = nb_json_get_number(course, "steps");
    struct nb_figure *f = nb_figures_new(figures, meta, nb_textf("%s-%s-%.0f", what, workload, steps));
    f->title = nb_strdup(title);
    f->subtitle = nb_textf("%s, %.0f steps, medians over seeds", workload, steps);
    return f;
}

/* Points (x, y) of two lists; x null: 0, 1, 2, .. */
static void add_line(struct nb_figure *f, size_t panel, const char *arm, const cJSON *x, const cJSON *y) {
    const size_t entry = nb_figure_entry(f, arm);
    for (int i = 0; i < cJSON_GetArraySize(y); i++) {
        const cJSON *at = x ? cJSON_GetArrayItem(x, i) : NULL, *value = cJSON_GetArrayItem(y, i);
        if (!cJSON_IsNumber(value) || (x && !cJSON_IsNumber(at))) continue;
        nb_figure_add(f, panel, entry, (struct nb_point){at ? at->valuedouble : i, value->valuedouble, NAN, NAN});
    }
}

static void draw_losses(struct nb_figures *figures, const struct nb_results *meta, const cJSON *all,
                        const cJSON *first) {
    struct nb_figure *f = new_figure(figures, meta, first, "loss", "Loss while training");
    const cJSON *course;
    f->caption = nb_strdup(
        "Every arm starts from the same weights and sees the same batches in the same order. Losses are in nats; one "
        "that has learned nothing is the logarithm of the number of classes.");
    f->n_panels = 1;
    f->panels[0] = (struct nb_panel){NULL, "step", "loss", NB_SCALE_LINEAR, NB_SCALE_LINEAR};
    cJSON_ArrayForEach(course, all) {
        const cJSON *loss = nb_json_get(course, "loss");
        if (same_course(course, first))
            add_line(f, 0, nb_json_get_string(course, "arm"), nb_json_get(loss, "steps"), nb_json_get(loss, "median"));
    }
    nb_figure_sort(f);
}

static const cJSON *site_of(const cJSON *course, const char *list, const char *site, bool gradient) {
    const cJSON *one;
    cJSON_ArrayForEach(one, nb_json_get(course, list)) {
        if (nb_json_is(one, "site", site) && nb_json_get_bool(one, "gradient") == gradient) return one;
    }
    return NULL;
}

static void draw_site(struct nb_figures *figures, const struct nb_results *meta, const cJSON *all, const cJSON *first,
                      const cJSON *site) {
    const char *name = nb_json_get_string(site, "site");
    const bool gradient = nb_json_get_bool(site, "gradient");
    char what[100], title[120];
    const cJSON *course;
    snprintf(what, sizeof what, "%s-%s", gradient ? "gradient" : "activation", name);
    snprintf(title, sizeof title, "Standard deviation of %s %s", gradient ? "the gradient at" : "activations at", name);
    struct nb_figure *f = new_figure(figures, meta, first, what, title);
    f->caption =
        nb_strdup("By layer at the first step and at the last, and of the last layer over the training. Logarithmic: "
                  "what keeps its width is level.");
    f->n_panels = 3;
    f->panels[0] = (struct nb_panel){"first step", "layer", "standard deviation", NB_SCALE_LINEAR, NB_SCALE_DECADES};
    f->panels[1] = (struct nb_panel){"last step", "layer", "standard deviation", NB_SCALE_LINEAR, NB_SCALE_DECADES};
    f->panels[2] = (struct nb_panel){"last layer", "step", "standard deviation", NB_SCALE_LINEAR, NB_SCALE_DECADES};
    cJSON_ArrayForEach(course, all) {
        const cJSON *layers = site_of(course, "layers", name, gradient);
        const cJSON *last = site_of(course, "last_layer", name, gradient);
        const char *arm = nb_json_get_string(course, "arm");
        if (!same_course(course, first)) continue;
        add_line(f, 0, arm, NULL, nb_json_get(layers, "start"));
        add_line(f, 1, arm, NULL, nb_json_get(layers, "end"));
        add_line(f, 2, arm, nb_json_get(last, "steps"), nb_json_get(last, "std"));
    }
    nb_figure_sort(f);
    if (f->n_lines == 0) nb_figures_drop_last(figures);
}

/* The sites that claims are about: what a sublayer takes in, what it hands on, and the gradient of what it makes. */
static bool is_drawn(const cJSON *site) {
    const char *name = nb_json_get_string(site, "site");
    return nb_json_get_bool(site, "gradient")
               ? strcmp(name, "feed_forward.output") == 0
               : strcmp(name, "feed_forward.input") == 0 || strcmp(name, "feed_forward.stream") == 0;
}

void nb_claims_training_figures(struct nb_figures *figures, const cJSON *document, const struct nb_results *meta) {
    const cJSON *all = courses(document), *course, *site, *row;
    cJSON_ArrayForEach(row, regimes(document)) {
        if (!workload_before(regimes(document), row)) draw_regime(figures, meta, document, row);
    }
    size_t n = figures->n;
    cJSON_ArrayForEach(course, all) {
        if (!is_first(all, course) || figures->n - n >= MOST_FIGURES) continue;
        draw_losses(figures, meta, all, course);
        cJSON_ArrayForEach(site, nb_json_get(course, "layers")) {
            if (is_drawn(site)) draw_site(figures, meta, all, course, site);
        }
    }
}
