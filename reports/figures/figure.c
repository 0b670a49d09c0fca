// SPDX-License-Identifier: Apache-2.0
/* Figures: what is in them, and their data files. */
#include "reports/figures/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- heat maps --------------------------------------------------------------------------------------------------------- */

/* Light to dark with the error (a part of Crameri's batlow); states in colours that the scale does not have. */
static const struct {
    const char *name, *color;
} states[NB_N_HEAT_STATES] = {
    [NB_HEAT_VALUE] = {NULL, NULL},
    [NB_HEAT_NAN] = {"NaN", "#d7191c"},
    [NB_HEAT_INF] = {"Inf", "#ff9a2e"},
    [NB_HEAT_ZERO] = {"0 in place of a number", "#f266c2"},
    [NB_HEAT_UNSTORABLE] = {"no such rows in the dtype", "#e9e9e9"},
    [NB_HEAT_UNKNOWN] = {"not known", "#b0b0b0"},
};
static const char palette[] = "  set palette defined (0 '#fbfcd8', 0.2 '#c3e6b8', 0.4 '#6fc2b4', 0.6 '#2f8fae', 0.8 "
                              "'#24528c', 1 '#141a44')\n";

void nb_heat_init(struct nb_heat *heat, size_t n_x, size_t n_y) {
    *heat = (struct nb_heat){.n_x = n_x, .n_y = n_y};
    heat->x = nb_alloc(n_x, sizeof *heat->x);
    heat->y = nb_alloc(n_y, sizeof *heat->y);
    heat->value = nb_alloc(n_x * n_y, sizeof *heat->value);
    heat->state = nb_alloc(n_x * n_y, sizeof *heat->state);
    for (size_t i = 0; i < n_x * n_y; i++) heat->state[i] = NB_HEAT_UNKNOWN;
}

void nb_heat_release(struct nb_heat *heat) {
    free(heat->x);
    free(heat->y);
    free(heat->value);
    free(heat->state);
    *heat = (struct nb_heat){0};
}

bool nb_heat_is_in(const struct nb_figure *f) {
    for (size_t p = 0; p < f->n_panels; p++)
        if (f->heats[p].n_x) return true;
    return false;
}

double nb_heat_half_step(const struct nb_heat *heat, bool x_axis) {
    const size_t n = x_axis ? heat->n_x : heat->n_y;
    const double *at = x_axis ? heat->x : heat->y;
    return n > 1 ? fabs(at[n - 1] - at[0]) / (double)(n - 1) / 2 : 0.5;
}

static bool has_state(const struct nb_heat *heat, int state) {
    for (size_t i = 0; i < heat->n_x * heat->n_y; i++)
        if (heat->state[i] == state) return true;
    return false;
}

/* gnuplot counts the blocks of a file: those of the lines, then those of the panels before. */
static size_t block_of(const struct nb_figure *f, size_t panel, int state) {
    size_t block = f->n_lines;
    for (size_t p = 0; p <= panel; p++)
        for (int s = 0; s < (p < panel ? (int)NB_N_HEAT_STATES : state); s++) block += has_state(&f->heats[p], s);
    return block;
}

static void add_cell(const struct nb_heat *heat, size_t x, size_t y, struct nb_strbuf *out) {
    const double numbers[] = {heat->x[x], heat->y[y], nb_heat_half_step(heat, true), nb_heat_half_step(heat, false),
                              heat->value[y * heat->n_x + x]};
    for (int i = 0; i < 5; i++) {
        nb_strbuf_add(out, i ? " " : "");
        if (isfinite(numbers[i]))
            nb_format_exact(out, numbers[i]);
        else
            nb_strbuf_add(out, "?");
    }
    nb_strbuf_add(out, "\n");
}

void nb_heat_data(const struct nb_figure *f, size_t panel, struct nb_strbuf *out) {
    const struct nb_heat *heat = &f->heats[panel];
    for (int s = 0; s < NB_N_HEAT_STATES; s++) {
        if (!has_state(heat, s)) continue;
        if (block_of(f, panel, s)) nb_strbuf_add(out, "\n\n");
        nb_strbuf_add(out, "# panel: ");
        nb_escape_terminal(out, f->panels[panel].title ? f->panels[panel].title : "", true);
        nb_strbuf_addf(out, "\n# cells: %s\n# x, y, half width, half height, value\n", s ? states[s].name : "numbers");
        for (size_t y = 0; y < heat->n_y; y++)
            for (size_t x = 0; x < heat->n_x; x++)
                if (heat->state[y * heat->n_x + x] == s) add_cell(heat, x, y, out);
    }
}

void nb_heat_add_palette(const struct nb_figure *f, size_t panel, struct nb_strbuf *out) {
    if (!nb_heat_is_in(f)) return;
    nb_strbuf_add(out, palette);
    nb_strbuf_addf(out, "  set cbrange [%.17g:%.17g]\n", f->heat_low, f->heat_high);
    if (panel + 1 < f->n_panels) {
        nb_strbuf_add(out, "  unset colorbox\n");
        return;
    }
    nb_strbuf_add(out, "  set colorbox horizontal user origin screen 1 - 208./W, 120./H size screen 170./W, 14./H\n"
                       "  set cbtics 2 font ',9'\n  set cblabel ");
    nb_escape_gnuplot(out, f->heat_title ? f->heat_title : "");
    nb_strbuf_add(out, " font ',10' offset 0,0.6 noenhanced\n");
}

void nb_heat_plot(const struct nb_figure *f, size_t panel, const char **separator, struct nb_strbuf *out) {
    for (int s = 0; s < NB_N_HEAT_STATES; s++) {
        if (!has_state(&f->heats[panel], s)) continue;
        nb_strbuf_addf(out, "%s'%s.dat' index %zu using 1:2:3:4%s with boxxyerror fs solid noborder ", *separator,
                       f->name, block_of(f, panel, s), s ? "" : ":5");
        nb_strbuf_addf(out, s ? "fc rgb '%s' notitle" : "fc palette notitle", states[s].color);
        *separator = ", \\\n       ";
    }
}

void nb_heat_legend(const struct nb_figure *f, const char **separator, struct nb_strbuf *out) {
    for (int s = NB_HEAT_VALUE + 1; s < NB_N_HEAT_STATES; s++) {
        bool drawn = false;
        for (size_t p = 0; p < f->n_panels; p++) drawn |= has_state(&f->heats[p], s);
        if (!drawn) continue;
        nb_strbuf_addf(out, "%sNaN with points pt 5 ps 1.6 lc rgb '%s' title '%s'", *separator, states[s].color,
                       states[s].name);
        *separator = ", \\\n       ";
    }
}
