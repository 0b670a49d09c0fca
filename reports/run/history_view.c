// SPDX-License-Identifier: Apache-2.0
/* The history of cases over runs: a line for each case, every ratio, and the curves of those that changed most. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/figures/figure.h"
#include "reports/run/report.h"
#include "reports/run/summary.h"
#include "reports/text/format.h"
#include "reports/text/output.h"
#include "src/core/json.h"
#include "src/core/log.h"

/* ---- for a person: the runs, then a line for each case ---- */

static const char *cpu_of(const struct nb_results *r) {
    const char *model = nb_meta_cpu_model(r);
    return *model ? model : "?";
}

static void add_runs(const struct nb_history *h, const struct nb_page *page) {
    static const char *const titles[] = {"run", "started", "config", "version", "CPU", "folder"};
    struct nb_grid grid;
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < h->n_runs; i++) {
        const struct nb_results *r = &h->runs[i];
        nb_strbuf_addf(&grid.cell, "%zu", i + 1);
        nb_grid_end_cell(&grid);
        nb_grid_add(&grid, nb_meta_text(r, "started"));
        nb_grid_add(&grid, nb_meta_text(r, "config"));
        nb_grid_add(&grid, nb_meta_text(r, "version"));
        nb_grid_add(&grid, cpu_of(r));
        nb_grid_add(&grid, r->dir ? r->dir : "?");
    }
    nb_page_grid(page, &grid);
}

static void end_ratio(struct nb_grid *grid, double ratio) {
    nb_strbuf_add(&grid->cell, "");
    if (isfinite(ratio)) nb_strbuf_addf(&grid->cell, "%.3f", ratio);
    nb_grid_end_cell(grid);
}

static void add_case(const struct nb_history_case *c, size_t n_runs, const struct nb_key_parts *parts,
                     struct nb_grid *grid) {
    double least = NAN, most = NAN;
    for (size_t i = 0; i < n_runs; i++) {
        least = fmin(least, c->points[i].ratio.value);
        most = fmax(most, c->points[i].ratio.value);
    }
    nb_key_parts_short(parts, c->key, &grid->cell);
    nb_grid_end_cell(grid);
    nb_strbuf_addf(&grid->cell, "%zu", c->n_known);
    nb_grid_end_cell(grid);
    nb_strbuf_addf(&grid->cell, "%zu", c->n_noisy);
    nb_grid_end_cell(grid);
    end_ratio(grid, c->n_known ? c->points[c->first].ratio.value : (double)NAN);
    end_ratio(grid, c->n_known ? c->points[c->last].ratio.value : (double)NAN);
    end_ratio(grid, least);
    end_ratio(grid, most);
    nb_strbuf_add(&grid->cell, "");
    if (isfinite(c->change.value)) nb_strbuf_addf(&grid->cell, "%+.1f %%", 100 * (c->change.value - 1));
    nb_grid_end_cell(grid);
    nb_strbuf_add(&grid->cell, "");
    if (nb_interval_known(&c->change))
        nb_strbuf_addf(&grid->cell, "[%+.1f, %+.1f]", 100 * (c->change.low - 1), 100 * (c->change.high - 1));
    nb_grid_end_cell(grid);
}

static void add_cases(const struct nb_history *h, const struct nb_page *page) {
    static const char *const titles[] = {"case",  "runs", "noisy",  "first",   "last",
                                         "least", "most", "change", "interval"};
    static const bool right[] = {false, true, true, true, true, true, true, true, true};
    static const int ranks[] = {NB_GRID_STAYS, 7, 1, 4, 5, 2, 3, NB_GRID_STAYS, 6};
    const char **keys = nb_alloc(h->n + 1, sizeof *keys);
    struct nb_key_parts parts;
    struct nb_grid grid;
    for (size_t i = 0; i < h->n; i++) keys[i] = h->cases[i].key;
    nb_key_parts_init(&parts, keys, h->n);
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    grid.right = right;
    grid.ranks = ranks;
    for (size_t i = 0; i < h->n; i++) add_case(&h->cases[i], h->n_runs, &parts, &grid);
    nb_page_grid(page, &grid);
    nb_key_parts_release(&parts);
    free((void *)keys);
}

static int print_page(const struct nb_history *h, const char *format, FILE *out) {
    struct nb_strbuf text = {0};
    const struct nb_page page = nb_page_for(out, strcmp(format, "markdown") == 0, &text);
    add_runs(h, &page);
    nb_strbuf_add(&text, "\n");
    add_cases(h, &page);
    nb_strbuf_add(&text, "\n");
    nb_page_say(
        &page,
        "Ratios are times over that of the group's reference case, measured in pairs inside each run; change is the "
        "last over the first, with a 95 % interval for each case alone. Noisy runs of a case are kept: their intervals "
        "are wide. Runs in which it failed, had another reference or ran on another CPU than last are left out: --format "
        "csv says why.");
    return nb_output(&text, out);
}

/* ---- for a program: every ratio ---- */

static int print_csv(const struct nb_history *h, FILE *out) {
    static const char *const titles[] = {"case",  "reference", "run",  "started", "folder",
                                         "ratio", "low",       "high", "reason"};
    struct nb_grid grid;
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < h->n; i++)
        for (size_t run = 0; run < h->n_runs; run++) {
            const struct nb_history_point *p = &h->cases[i].points[run];
            const double figures[] = {p->ratio.value, p->ratio.low, p->ratio.high};
            nb_grid_add(&grid, h->cases[i].key);
            nb_grid_add(&grid, h->cases[i].reference);
            nb_strbuf_addf(&grid.cell, "%zu", run + 1);
            nb_grid_end_cell(&grid);
            nb_grid_add(&grid, nb_meta_text(&h->runs[run], "started"));
            nb_grid_add(&grid, h->runs[run].dir ? h->runs[run].dir : "?");
            for (int f = 0; f < 3; f++) {
                nb_strbuf_add(&grid.cell, "");
                if (isfinite(figures[f])) nb_strbuf_addf(&grid.cell, "%.6g", figures[f]);
                nb_grid_end_cell(&grid);
            }
            nb_grid_add(&grid, p->reason);
        }
    const int result = nb_grid_print(&grid, "csv", out);
    nb_grid_release(&grid);
    return result;
}

static int print_json(const struct nb_history *h, FILE *out) {
    cJSON *json = cJSON_CreateObject(), *runs = cJSON_AddArrayToObject(json, "runs");
    cJSON *cases = cJSON_AddArrayToObject(json, "cases");
    for (size_t run = 0; run < h->n_runs; run++) {
        cJSON *one = nb_json_add_object(runs);
        nb_json_text(one, "started", nb_meta_text(&h->runs[run], "started"));
        nb_json_text(one, "config", nb_meta_text(&h->runs[run], "config"));
        nb_json_text(one, "version", nb_meta_text(&h->runs[run], "version"));
        nb_json_text(one, "cpu", cpu_of(&h->runs[run]));
        nb_json_text(one, "folder", h->runs[run].dir);
    }
    for (size_t i = 0; i < h->n; i++) {
        const struct nb_history_case *c = &h->cases[i];
        cJSON *one = nb_json_add_object(cases);
        nb_json_text(one, "key", c->key);
        nb_json_text(one, "reference", c->reference);
        nb_json_interval(one, "change", &c->change);
        cJSON *points = cJSON_AddArrayToObject(one, "points");
        for (size_t run = 0; run < h->n_runs; run++) {
            cJSON *point = nb_json_add_object(points);
            nb_json_interval(point, "ratio", &c->points[run].ratio);
            nb_json_text(point, "reason", c->points[run].reason[0] ? c->points[run].reason : NULL);
        }
    }
    return nb_output_json(json, out);
}

int nb_history_print(const struct nb_history *h, const char *format, FILE *out) {
    if (strcmp(format, "csv") == 0) return print_csv(h, out);
    return strcmp(format, "json") == 0 ? print_json(h, out) : print_page(h, format, out);
}

/* ---- curves ---- */

static int by_size_of_change(const void *left, const void *right) {
    const struct nb_history_case *const *a = left, *const *b = right;
    const double x = fabs(log((*a)->change.value)), y = fabs(log((*b)->change.value));
    return x > y ? -1 : x < y;
}

static void add_curve(struct nb_figure *f, const struct nb_history *h, const struct nb_history_case *c,
                      const struct nb_key_parts *parts) {
    struct nb_strbuf name = {0};
    nb_key_parts_short(parts, c->key, &name);
    const size_t entry = nb_figure_entry(f, name.text);
    const double first = c->points[c->first].ratio.value;
    for (size_t run = 0; run < h->n_runs; run++) {
        const struct nb_interval *r = &c->points[run].ratio;
        nb_figure_add(f, 0, entry,
                      (struct nb_point){(double)(run + 1), 100 * (r->value / first - 1), 100 * (r->low / first - 1),
                                        100 * (r->high / first - 1)});
    }
    nb_strbuf_release(&name);
}

int nb_history_plot(const struct nb_history *h, const char *dir) {
    enum { MOST = 8 };
    const struct nb_history_case **chosen = nb_alloc(h->n + 1, sizeof *chosen);
    const char **keys = nb_alloc(h->n + 1, sizeof *keys);
    const struct nb_results *last = &h->runs[h->n_runs - 1];
    struct nb_figures figures = {0};
    struct nb_key_parts parts;
    size_t n = 0;
    nb_strbuf_add(&figures.notes, "");
    for (size_t i = 0; i < h->n; i++)
        if (isfinite(h->cases[i].change.value)) chosen[n++] = &h->cases[i];
    qsort(chosen, n, sizeof *chosen, by_size_of_change);
    if (n > MOST) n = MOST;
    for (size_t i = 0; i < n; i++) keys[i] = chosen[i]->key;
    nb_key_parts_init(&parts, keys, n);
    if (n == 0) {
        nb_figures_note(&figures, "history: no case has a ratio to one reference in two runs");
    } else {
        struct nb_figure *f = nb_figures_new(&figures, last, "history");
        struct nb_strbuf common = {0};
        f->n_panels = 1;
        f->panels[0] = (struct nb_panel){NULL, "run", "change, %", NB_SCALE_LINEAR, NB_SCALE_PERCENT};
        f->title = nb_strdup("ratio to the reference, since the first run");
        nb_key_parts_common(&parts, &common);
        f->subtitle = nb_strdup(common.text ? common.text : "");
        f->caption = nb_strdup(
            "The cases whose time over that of their group's reference changed most between the first run and the last; above 0 is slower "
            "than in the first. Each ratio was measured in pairs inside its run; bars are its 95 % interval. The data file has the full names.");
        for (size_t i = 0; i < n; i++) add_curve(f, h, chosen[i], &parts);
        nb_strbuf_release(&common);
    }
    const int result = nb_figures_write(&figures, dir, "plots");
    nb_figures_release(&figures);
    nb_key_parts_release(&parts);
    free((void *)chosen);
    free((void *)keys);
    return result;
}
