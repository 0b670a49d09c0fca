// SPDX-License-Identifier: Apache-2.0
/* The gnuplot script of a figure. All text stands in single quotes, where gnuplot expands nothing, and terminals run
 * without enhanced text, so that an underscore is an underscore. */
#include <math.h>

#include "reports/figures/figure.h"
#include "reports/figures/figure_axis.h"
#include "reports/text/escape.h"

/* Okabe & Ito's palette without its yellow (too pale on white): told apart under every common colour blindness. */
static const char *const colors[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"};
static const int point_types[] = {7, 5, 9, 13, 11, 6, 4};
enum { N_COLORS = sizeof colors / sizeof *colors, ROW_HEIGHT = 20, CHARACTER_WIDTH = 7 };

static bool has_names(const struct nb_figure *f) { return f->n_panels && f->panels[0].y_scale == NB_SCALE_NAMES; }

/* Widest text in terminal cells, as far as a picture gives it room. */
static size_t widest(char *const *texts, size_t n) {
    size_t most = 4;
    for (size_t i = 0; i < n; i++)
        if (nb_utf8_cells(texts[i]) > most) most = nb_utf8_cells(texts[i]);
    return most < 48 ? most : 48;
}

static int legend_width(const struct nb_figure *f) {
    const int texts = 60 + CHARACTER_WIDTH * (int)widest(f->entries, f->n_entries);
    return nb_heat_is_in(f) && texts < 230 ? 230 : texts;
}

static int left_margin(const struct nb_figure *f) {
    return has_names(f) ? 24 + CHARACTER_WIDTH * (int)widest(f->names, f->n_names) : 70;
}

void nb_figure_size(const struct nb_figure *f, int *width, int *height) {
    size_t n = f->n_panels ? f->n_panels : 1;
    int panel = has_names(f) ? 235 : n > 1 ? 360 : nb_heat_is_in(f) ? 480 : 620;
    int body = has_names(f) ? ROW_HEIGHT * (int)(f->n_names * (f->n_entries > 1 ? f->n_entries : 1)) : 300;
    if (body < 120) body = 120;
    if (body > 3000) body = 3000;
    if (nb_heat_is_in(f) && body < 20 * ((int)f->n_entries + NB_N_HEAT_STATES) + 60)
        body = 20 * ((int)f->n_entries + NB_N_HEAT_STATES) + 60; /* and the colour scale */
    if ((int)f->n_entries * 20 > body) body = (int)f->n_entries * 20;
    *width = left_margin(f) + (int)n * panel + ((int)n - 1) * (has_names(f) ? 40 : 60) + 20 + legend_width(f);
    *height = 96 + body + 84;
}

static void add_quoted(struct nb_strbuf *out, const char *text, size_t cells) {
    struct nb_strbuf cut = {0};
    nb_strbuf_add(&cut, text ? text : "");
    nb_utf8_cut(&cut, cells, "…");
    nb_escape_gnuplot(out, cut.text);
    nb_strbuf_release(&cut);
}

/* Label texts come from outside, the format is ours. */
static void add_label(struct nb_strbuf *out, int id, int x, int y, int height, int size, const char *color,
                      const char *text, size_t cells) {
    nb_strbuf_addf(out, "  set label %d ", id);
    add_quoted(out, text, cells);
    nb_strbuf_addf(out, " at screen %d./W, 1 - %d./H left font ',%d' textcolor rgb '%s' noenhanced\n", x,
                   y < 0 ? height + y : y, size, color);
}

static void add_device(const struct nb_figure *f, int width, int height, struct nb_strbuf *out) {
    nb_strbuf_addf(out, "W = %d\nH = %d\n", width, height);
    nb_strbuf_add(out, "do for [device=1:2] {\n"
                       "  if (device == 1) {\n"
                       "    set terminal svg size W,H dynamic noenhanced font 'DejaVu Sans,12' background '#ffffff'\n");
    nb_strbuf_addf(out, "    set output '%s.svg'\n  } else {\n", f->name);
    nb_strbuf_add(out,
                  "    if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {\n"
                  "      set terminal pngcairo size 2*W,2*H noenhanced font 'DejaVu Sans,12' fontscale 1.5 linewidth 2 "
                  "pointscale 2 background '#ffffff'\n"
                  "    } else {\n      set terminal png size W,H noenhanced\n    }\n");
    nb_strbuf_addf(out, "    set output '%s.png'\n  }\n", f->name);
}

static void add_styles(const struct nb_figure *f, struct nb_strbuf *out) {
    for (size_t e = 0; e < f->n_entries; e++)
        nb_strbuf_addf(out, "  set style line %zu lc rgb '%s' lw 1.8 dt %zu pt %d ps 0.75\n", e + 1,
                       colors[e % N_COLORS], e / N_COLORS % 4 + 1, point_types[(e + e / N_COLORS) % N_COLORS]);
}

static void add_margins(const struct nb_figure *f, size_t panel, int width, struct nb_strbuf *out) {
    int left = left_margin(f), gap = has_names(f) ? 40 : 60, n = (int)f->n_panels;
    int each = (width - left - 20 - legend_width(f) - (n - 1) * gap) / n;
    int x = left + (int)panel * (each + gap);
    nb_strbuf_addf(out,
                   "  set lmargin at screen %d./W\n  set rmargin at screen %d./W\n"
                   "  set tmargin at screen 1 - 96./H\n  set bmargin at screen 84./H\n",
                   x, x + each);
}

static void add_legend(const struct nb_figure *f, int width, struct nb_strbuf *out) {
    nb_strbuf_addf(out,
                   "  set key at screen %d./W, 1 - 96./H left top Left reverse samplen 2 spacing 1.25 noenhanced "
                   "width 0 font ',11'\n",
                   width - legend_width(f) + 4);
}

/* `using` for an axis that cannot show 0: it is drawn at the lower end. */
static void add_using(const struct nb_figure *f, const struct nb_panel *p, size_t line, bool interval,
                      struct nb_strbuf *out) {
    nb_strbuf_addf(out, "'%s.dat' index %zu using ", f->name, line);
    const bool of_x = p->y_scale == NB_SCALE_NAMES; /* whose interval columns 3 and 4 are */
    for (int column = 1; column <= (interval ? 4 : 2); column++) {
        const bool is_x = column == 1 || (column > 2 && of_x);
        const bool clamped = (is_x ? p->x_scale : p->y_scale) == NB_SCALE_DECADES;
        const char axis = is_x ? 'x' : 'y', *separator = column > 1 ? ":" : "";
        if (clamped)
            nb_strbuf_addf(out, "%s($%d > LEAST_%c ? $%d : LEAST_%c)", separator, column, axis, column, axis);
        else
            nb_strbuf_addf(out, "%s%d", separator, column);
    }
}

static const char *style_of(const struct nb_figure *f, bool law) {
    return law ? "lines" : has_names(f) || f->scattered ? "points" : "linespoints";
}

/* On a heat map a white line below keeps a law from drowning in the colours. */
static void add_line(const struct nb_figure *f, size_t line, struct nb_strbuf *out) {
    const struct nb_line *l = &f->lines[line];
    const struct nb_panel *p = &f->panels[l->panel];
    const size_t style = l->entry + 1;
    if (l->law && f->heats[l->panel].n_x) {
        add_using(f, p, line, false, out);
        nb_strbuf_add(out, " with lines lc rgb '#ffffff' lw 2.6 dt 1 notitle, \\\n       ");
    }
    if (!l->law) {
        add_using(f, p, line, true, out);
        nb_strbuf_addf(out, " with %s ls %zu lw 1 dt 1 pt -1 notitle, \\\n       ",
                       p->y_scale == NB_SCALE_NAMES ? "xerrorbars" : "yerrorbars", style);
    }
    add_using(f, p, line, false, out);
    nb_strbuf_addf(out, " with %s ls %zu%s notitle", style_of(f, l->law), style, l->law ? " dt 2" : "");
}

static void add_curves(const struct nb_figure *f, size_t panel, struct nb_strbuf *out) {
    const char *separator = "  plot ";
    nb_heat_plot(f, panel, &separator, out);
    for (size_t i = 0; i < f->n_lines; i++) {
        if (f->lines[i].panel != panel) continue;
        nb_strbuf_add(out, separator);
        add_line(f, i, out);
        separator = ", \\\n       ";
    }
    for (size_t e = 0; panel + 1 == f->n_panels && e < f->n_entries; e++) {
        const bool law = !nb_figure_measured(f, e);
        nb_strbuf_addf(out, "%sNaN with %s ls %zu%s title ", separator, style_of(f, law), e + 1, law ? " dt 2" : "");
        add_quoted(out, f->entries[e], 48);
        separator = ", \\\n       ";
    }
    if (panel + 1 == f->n_panels) nb_heat_legend(f, &separator, out);
    nb_strbuf_add(out, *separator == ',' ? "\n" : "  plot NaN notitle\n"); /* a panel without data is still drawn */
}

static void add_panel(const struct nb_figure *f, size_t panel, int width, struct nb_strbuf *out) {
    const struct nb_panel *p = &f->panels[panel];
    add_margins(f, panel, width, out);
    nb_strbuf_add(out, "  set title ");
    add_quoted(out, p->title, 80);
    nb_strbuf_add(out, " font ',12' offset 0,-0.4 noenhanced\n  set xlabel ");
    add_quoted(out, p->x_title, 80);
    nb_strbuf_add(out, " noenhanced\n  set ylabel ");
    add_quoted(out, p->y_title, 80);
    nb_strbuf_add(out, " noenhanced offset 1,0\n");
    nb_figure_add_axes(f, panel, out);
    if (panel + 1 == f->n_panels)
        add_legend(f, width, out);
    else
        nb_strbuf_add(out, "  unset key\n");
    nb_heat_add_palette(f, panel, out);
    add_curves(f, panel, out);
    nb_strbuf_add(out, "  unset label\n  unset arrow\n");
}

void nb_figure_script(const struct nb_figure *f, struct nb_strbuf *out) {
    int width, height;
    nb_figure_size(f, &width, &height);
    size_t cells = (size_t)(width - 30) / CHARACTER_WIDTH;
    nb_strbuf_addf(out, "# Draws %s.svg and %s.png from %s.dat: gnuplot %s.gp, here.\n", f->name, f->name, f->name,
                   f->name);
    nb_strbuf_add(out, "reset\nset encoding utf8\nset datafile missing '?'\nset errorbars small\n");
    add_device(f, width, height, out);
    add_styles(f, out);
    nb_strbuf_add(out, "  set border 3 lc rgb '#444444' lw 1\n"
                       "  set tics nomirror out scale 0.6 textcolor rgb '#222222' font ',10'\n"
                       "  set grid xtics ytics back lc rgb '#d8d8d8' lw 0.8 dt 1\n"
                       "  set multiplot\n");
    add_label(out, 1, 16, 26, height, 15, "#111111", f->title, cells * 3 / 4);
    add_label(out, 2, 16, 50, height, 10, "#555555", f->subtitle, cells * 9 / 8);
    add_label(out, 3, 16, -14, height, 9, "#777777", f->footer, cells);
    for (size_t p = 0; p < f->n_panels; p++) add_panel(f, p, width, out);
    nb_strbuf_add(out, "  unset multiplot\n  unset output\n}\n");
}
