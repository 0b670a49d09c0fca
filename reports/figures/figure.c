// SPDX-License-Identifier: Apache-2.0
/* Figures: what is in them, and their data files. */
#include "reports/figures/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/figures/figure_heat.h"
#include "reports/text/escape.h"
#include "reports/text/format.h"
#include "src/core/log.h"

void nb_figure_init(struct nb_figure *f, const char *name) {
    struct nb_strbuf safe = {0};
    nb_escape_file_name(&safe, name);
    *f = (struct nb_figure){.name = safe.text};
}

static void free_all(char **texts, size_t n) {
    for (size_t i = 0; i < n; i++) free(texts[i]);
    free(texts);
}

void nb_figure_release(struct nb_figure *f) {
    for (size_t i = 0; i < f->n_lines; i++) free(f->lines[i].points);
    for (size_t p = 0; p < NB_FIGURE_PANELS; p++) nb_heat_release(&f->heats[p]);
    free(f->lines);
    free_all(f->entries, f->n_entries);
    free_all(f->names, f->n_names);
    free(f->name);
    free(f->title);
    free(f->subtitle);
    free(f->caption);
    free(f->footer);
    *f = (struct nb_figure){0};
}

static size_t find_or_add(char ***texts, size_t *n, const char *text) {
    for (size_t i = 0; i < *n; i++)
        if (strcmp((*texts)[i], text) == 0) return i;
    *texts = nb_realloc(*texts, *n + 1, sizeof **texts);
    (*texts)[*n] = nb_strdup(text);
    return (*n)++;
}

size_t nb_figure_entry(struct nb_figure *f, const char *label) {
    return find_or_add(&f->entries, &f->n_entries, label);
}
size_t nb_figure_name(struct nb_figure *f, const char *name) { return find_or_add(&f->names, &f->n_names, name); }

static struct nb_line *line_of(struct nb_figure *f, size_t panel, size_t entry, bool law) {
    for (size_t i = 0; i < f->n_lines; i++) {
        const struct nb_line *line = &f->lines[i];
        if (line->panel == panel && line->entry == entry && line->law == law) return &f->lines[i];
    }
    f->lines = nb_realloc(f->lines, f->n_lines + 1, sizeof *f->lines);
    f->lines[f->n_lines] = (struct nb_line){.panel = panel, .entry = entry, .law = law};
    return &f->lines[f->n_lines++];
}

static void append(struct nb_figure *f, size_t panel, size_t entry, bool law, struct nb_point point) {
    if (!isfinite(point.x) || !isfinite(point.y)) return;
    struct nb_line *line = line_of(f, panel, entry, law);
    if (line->n == line->capacity) {
        line->capacity = 2 * line->capacity + 8;
        line->points = nb_realloc(line->points, line->capacity, sizeof *line->points);
    }
    line->points[line->n++] = point;
}

void nb_figure_add(struct nb_figure *f, size_t panel, size_t entry, struct nb_point point) {
    append(f, panel, entry, false, point);
}

void nb_figure_add_law(struct nb_figure *f, size_t panel, size_t entry, double x, double y) {
    append(f, panel, entry, true, (struct nb_point){x, y, NAN, NAN});
}

bool nb_figure_measured(const struct nb_figure *f, size_t entry) {
    for (size_t i = 0; i < f->n_lines; i++)
        if (f->lines[i].entry == entry && !f->lines[i].law) return true;
    return false;
}

static int by_x(const void *left, const void *right) {
    const struct nb_point *a = left, *b = right;
    return (a->x > b->x) - (a->x < b->x);
}

static void sort_line(struct nb_line *line) {
    size_t kept = 0;
    if (line->n) qsort(line->points, line->n, sizeof *line->points, by_x);
    for (size_t p = 0; p < line->n; p++)
        if (kept == 0 || line->points[p].x != line->points[kept - 1].x) line->points[kept++] = line->points[p];
    line->n = kept;
}

void nb_figure_sort(struct nb_figure *f) {
    for (size_t i = 0; i < f->n_lines; i++) sort_line(&f->lines[i]);
}

void nb_figure_sort_laws(struct nb_figure *f) {
    for (size_t i = 0; i < f->n_lines; i++)
        if (f->lines[i].law) sort_line(&f->lines[i]);
}

static void add_number(struct nb_strbuf *out, double value) {
    nb_strbuf_add(out, out->len && out->text[out->len - 1] != '\n' ? " " : "");
    if (isfinite(value))
        nb_format_exact(out, value);
    else
        nb_strbuf_add(out, "?");
}

static void add_remark(struct nb_strbuf *out, const char *what, const char *text) {
    if (!text) return;
    nb_strbuf_addf(out, "# %s", what);
    nb_escape_terminal(out, text, true);
    nb_strbuf_add(out, "\n");
}

void nb_figure_data(const struct nb_figure *f, struct nb_strbuf *out) {
    add_remark(out, "", f->title);
    add_remark(out, "", f->subtitle);
    add_remark(out, "", f->footer);
    for (size_t i = 0; i < f->n_names; i++) {
        nb_strbuf_addf(out, "# y = %zu: ", i);
        nb_escape_terminal(out, f->names[i], true);
        nb_strbuf_add(out, "\n");
    }
    for (size_t i = 0; i < f->n_lines; i++) {
        const struct nb_line *line = &f->lines[i];
        if (i) nb_strbuf_add(out, "\n\n");
        add_remark(out, "panel: ", f->panels[line->panel].title);
        add_remark(out, line->law ? "predicted: " : "line: ", f->entries[line->entry]);
        nb_strbuf_addf(out, "# x = %s, y = %s, low, high\n", f->panels[line->panel].x_title,
                       f->panels[line->panel].y_title ? f->panels[line->panel].y_title : "place");
        for (size_t p = 0; p < line->n; p++) {
            const double values[] = {line->points[p].x, line->points[p].y, line->points[p].low, line->points[p].high};
            for (size_t v = 0; v < 4; v++) add_number(out, values[v]);
            nb_strbuf_add(out, "\n");
        }
    }
    for (size_t p = 0; p < f->n_panels; p++) nb_heat_data(f, p, out);
}
