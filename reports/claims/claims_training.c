// SPDX-License-Identifier: Apache-2.0
/* Tables of whole steps, of memory and of losses, and curves. */
#include "reports/claims/claims_report.h"

#include <math.h>
#include <string.h>

#include "reports/text/grid.h"
#include "src/core/format.h"
#include "src/core/json.h"
#include "src/core/log.h"

struct table {
    const char *list, *title, *const *titles;
    size_t n_columns;
    void (*add)(struct nb_grid *grid, const cJSON *entry);
};

static void add_interval(struct nb_grid *grid, const cJSON *entry, const char *name, double factor, const char *unit) {
    const struct nb_interval v = nb_interval_times(nb_json_get_interval(entry, name), factor);
    nb_strbuf_add(&grid->cell, isnan(v.value) ? "not measured" : "");
    nb_format_interval(&grid->cell, v, unit);
    nb_grid_end_cell(grid);
}

static void add_number(struct nb_grid *grid, const cJSON *entry, const char *name, double factor, const char *unit) {
    nb_grid_addf(grid, "%.4g%s", factor * nb_json_get_number(entry, name), unit);
}

static void add_steps(struct nb_grid *grid, const cJSON *entry) {
    static const char *const parts[] = {"seconds", "forward", "backward", "update"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) add_interval(grid, entry, parts[i], 1e3, " ms");
    if (nb_json_get_text(entry, "against"))
        add_interval(grid, entry, "cut", 100, "%");
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

static const char *const of_steps[] =
    {"model", "arm", "step", "forward", "backward", "update", "time saved against LayerNorm", "launches"},
                         *const of_memory[] = {"model", "arm", "peak", "kept for backward", "parameters", "launches"},
                         *const of_courses[] = {"model", "arm", "steps", "loss of the last tenth", "seeds"};
static const struct table tables[] = {
    {"steps", "Whole steps", of_steps, 8, add_steps},
    {"inference", "Whole forward passes, nothing kept for gradients", of_steps, 8, add_steps},
    {"memory", "Memory of a process that trains", of_memory, 6, add_memory},
    {"courses", "Losses after training", of_courses, 5, add_course}};

/* False: the list is empty. */
static bool fill(struct nb_grid *grid, const struct table *t, const cJSON *document) {
    const cJSON *training = nb_json_get(document, "training"), *entry;
    nb_grid_init(grid, t->titles, t->n_columns);
    cJSON_ArrayForEach(entry, nb_json_get(training, t->list)) {
        nb_grid_row(grid, nb_json_get_string(entry, "workload"), nb_json_get_string(entry, "arm"));
        t->add(grid, entry);
    }
    return grid->n_cells > 0;
}

static const char lead[] =
    "The sources' classes and models, run by PyTorch %s on %s. Arms of a model take turns step by step in one process, in random orders, "
    "each followed by its reverse; steps of one block are compared. Memory is of a process for each arm, less what it had "
    "before the model. Losses are of trainings that start from the same weights and see the same batches. Intervals are "
    "over launches or seeds, at 95%%.";

static void add_lead(const struct nb_claims_page *p, const cJSON *document) {
    const cJSON *training = nb_json_get(document, "training");
    const char *version = nb_json_get_text(training, "torch"), *device = nb_json_get_text(training, "device");
    char *text freed = nb_textf(lead, version ? version : "(version not known)",
                                !device || strcmp(device, "cpu") == 0 ? "the CPU" : device);
    nb_claims_heading(p, 2, "training", "Steps, memory and losses in PyTorch");
    nb_claims_say(p, "", text);
}

void nb_claims_training_tables(const struct nb_claims_page *p, const cJSON *document) {
    bool first = true;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        struct nb_grid grid released_by(nb_grid_release);
        if (fill(&grid, &tables[i], document)) {
            if (first) add_lead(p, document);
            first = false;
            nb_claims_heading(p, 3, tables[i].list, tables[i].title);
            nb_claims_grid(p, &grid);
        }
    }
}

/* ---- curves of losses by step ---- */

enum { MOST_FIGURES = 12 };

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

static void draw_losses(struct nb_figures *figures, const struct nb_results *meta, const cJSON *all,
                        const cJSON *first) {
    const char *workload = nb_json_get_string(first, "workload");
    const double steps = nb_json_get_number(first, "steps");
    struct nb_figure *f = nb_figures_new(figures, meta, nb_textf("loss-%s-%.0f", workload, steps));
    const cJSON *course;
    f->title = nb_strdup("Loss while training");
    f->subtitle = nb_textf("%s, %.0f steps, medians over seeds", workload, steps);
    f->caption = nb_strdup(
        "Every arm starts from the same weights and sees the same batches in the same order. Losses are in nats; one "
        "that has learned nothing is the logarithm of the number of classes.");
    f->panels[0] = (struct nb_panel){NULL, "step", "loss", NB_SCALE_LINEAR, NB_SCALE_LINEAR};
    cJSON_ArrayForEach(course, all) {
        const cJSON *loss = nb_json_get(course, "loss"), *x = nb_json_get(loss, "steps"),
                    *y = nb_json_get(loss, "median");
        if (!same_course(course, first)) continue;
        const char *arm = nb_json_get_string(course, "arm");
        nb_figure_entry(f, arm);
        for (int i = 0; i < cJSON_GetArraySize(y); i++) {
            const cJSON *at = cJSON_GetArrayItem(x, i), *value = cJSON_GetArrayItem(y, i);
            if (cJSON_IsNumber(value) && cJSON_IsNumber(at))
                nb_figure_add(f, 0, arm, (struct nb_point){at->valuedouble, value->valuedouble, NAN, NAN, false});
        }
    }
    nb_figure_sort(f);
}

void nb_claims_training_figures(struct nb_figures *figures, const cJSON *document, const struct nb_results *meta) {
    const cJSON *all = nb_json_get(nb_json_get(document, "training"), "courses"), *course;
    const size_t before = figures->n;
    cJSON_ArrayForEach(course, all) {
        if (is_first(all, course) && figures->n - before < MOST_FIGURES) draw_losses(figures, meta, all, course);
    }
}
