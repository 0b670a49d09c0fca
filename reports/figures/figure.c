// SPDX-License-Identifier: Apache-2.0
/* What is in a figure. */
#include "reports/figures/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/text/escape.h"
#include "src/core/log.h"

void nb_figure_init(struct nb_figure *f, const char *name) {
    struct nb_strbuf safe = {0};
    nb_escape_file_name(&safe, name);
    *f = (struct nb_figure){.name = safe.text, .n_panels = 1};
}

void nb_figure_release(struct nb_figure *f) {
    for (size_t i = 0; i < f->n_lines; i++) free(f->lines[i].points);
    for (size_t p = 0; p < NB_FIGURE_PANELS; p++)
        nb_free_all(f->heats[p].x, f->heats[p].y, f->heats[p].value, f->heats[p].state);
    nb_strings_release(&f->entries);
    nb_strings_release(&f->names);
    nb_free_all(f->lines, f->name, f->title, f->subtitle, f->caption, f->footer);
    *f = (struct nb_figure){0};
}

static size_t find_or_add(struct nb_strings *texts, const char *text) {
    for (size_t i = 0; i < texts->n; i++)
        if (strcmp(texts->items[i], text) == 0) return i;
    nb_strings_add(texts, text);
    return texts->n - 1;
}

size_t nb_figure_entry(struct nb_figure *f, const char *label) { return find_or_add(&f->entries, label); }

size_t nb_figure_name(struct nb_figure *f, const char *name) { return find_or_add(&f->names, name); }

static struct nb_line *line_of(struct nb_figure *f, size_t panel, size_t entry, bool law) {
    for (size_t i = 0; i < f->n_lines; i++) {
        struct nb_line *line = &f->lines[i];
        if (line->panel == panel && line->entry == entry && line->law == law) return line;
    }
    struct nb_line *added = NB_PUSH(f->lines, f->n_lines);
    *added = (struct nb_line){.panel = panel, .entry = entry, .law = law};
    return added;
}

static void append(struct nb_figure *f, size_t panel, const char *label, bool law, struct nb_point point) {
    const size_t entry = nb_figure_entry(f, label);
    if (!isfinite(point.x) || !isfinite(point.y)) return;
    struct nb_line *line = line_of(f, panel, entry, law);
    *NB_PUSH(line->points, line->n) = point;
}

void nb_figure_add(struct nb_figure *f, size_t panel, const char *label, struct nb_point point) {
    append(f, panel, label, false, point);
}

void nb_figure_add_law(struct nb_figure *f, size_t panel, const char *label, double x, double y) {
    append(f, panel, label, true, (struct nb_point){x, y, NAN, NAN, false});
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

bool nb_heat_is_in(const struct nb_figure *f) {
    for (size_t p = 0; p < f->n_panels; p++)
        if (f->heats[p].n_x) return true;
    return false;
}
