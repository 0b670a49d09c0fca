// SPDX-License-Identifier: Apache-2.0
/* Cells are drawn as boxes, not as an image, which viewers would blur. */
#include "reports/figures/figure_heat.h"

#include <math.h>
#include <stdlib.h>

#include "reports/text/escape.h"
#include "reports/text/format.h"
#include "src/core/log.h"

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
