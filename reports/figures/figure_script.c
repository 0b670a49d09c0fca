// SPDX-License-Identifier: Apache-2.0
/* The data file of a figure and the gnuplot script that draws it. All text stands in single quotes, where gnuplot expands nothing, and
 * terminals run without enhanced text, so that an underscore is an underscore. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/figures/figure.h"
#include "reports/text/escape.h"
#include "src/core/format.h"
#include "src/core/log.h"
#include "src/core/stats.h"

/* ---- colours ------------------------------------------------------------------------------------------------------------ */

/* An algorithm and a series of the claims page have one colour and one shape in all figures. Okabe & Ito's palette without its yellow (too pale on
 * white), then some of Tol's muted one. Shapes are filled; the one before each is the same, hollow, for what is too noisy to rank. */
static const struct {
    const char *names[4], *color;
    int shape;
} looks[] = {{{"fast", "rmsnorm", "step"}, "#0072B2", 7},
             {{"composed", "published"}, "#D55E00", 5},
             {{"twopass", "fused"}, "#009E73", 9},
             {{"keepdim", "native", "layernorm", "unfused"}, "#CC79A7", 13},
             {{"onepass", "plain", "PyTorch"}, "#E69F00", 11},
             {{"welford", "row"}, "#56B4E9", 7},
             {{"serial", "none", "GPU"}, "#000000", 5},
             {{"expanded", "lowp"}, "#882255", 9},
             {{"corrected", "composed_lowp"}, "#999933", 13},
             {{"shifted", "prmsnorm"}, "#332288", 11},
             {{"folded", "channels"}, "#44AA99", 15},
             {{"batchnorm"}, "#AA4499", 15}};
enum { N_LOOKS = sizeof looks / sizeof *looks };

/* Does the label have the name as a word, "rmsnorm_fast 256" fast? */
static const char *find_word(const char *label, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = strstr(label, name); at; at = strstr(at + 1, name))
        if ((at == label || strchr("_ ", at[-1])) && strchr(" ,", at[n])) return at;
    return NULL;
}

/* The look that the label's first known word asks for; of any other label one that its letters choose. */
static size_t wanted_look(const char *label) {
    const char *first = NULL;
    size_t look = 0;
    for (const char *c = label; *c; c++) look = (31 * look + (unsigned char)*c) % N_LOOKS;
    for (size_t i = 0; i < N_LOOKS; i++)
        for (int k = 0; k < 4 && looks[i].names[k]; k++) {
            const char *at = find_word(label, looks[i].names[k]);
            if (!at || (first && at >= first)) continue;
            first = at;
            look = i;
        }
    return look;
}

/* Rows with names of their own need no legend of these. */
static bool is_named(const struct nb_figure *f, size_t entry) {
    for (size_t i = 0; i < f->names.n; i++)
        if (strcmp(f->names.items[i], f->entries.items[entry]) == 0) return true;
    return false;
}

/* Of each entry; where an entry of the legend before has it, the next that is free. */
static void choose_looks(const struct nb_figure *f, size_t *chosen) {
    bool taken[N_LOOKS] = {false};
    for (size_t e = 0; e < f->entries.n; e++) {
        size_t look = wanted_look(f->entries.items[e]);
        for (int tries = 0; tries < N_LOOKS && taken[look]; tries++) look = (look + 1) % N_LOOKS;
        taken[look] = !is_named(f, e);
        chosen[e] = look;
    }
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
/* Half the distance of two cells. */
static double half_step(const struct nb_heat *heat, bool x_axis) {
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

/* ---- the data file -------------------------------------------------------------------------------------------------- */

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

static void add_cell(const struct nb_heat *heat, size_t x, size_t y, struct nb_strbuf *out) {
    const double numbers[] = {heat->x[x], heat->y[y], half_step(heat, true), half_step(heat, false),
                              heat->value[y * heat->n_x + x]};
    for (int i = 0; i < 5; i++) add_number(out, numbers[i]);
    nb_strbuf_add(out, "\n");
}

static void add_heat_data(const struct nb_figure *f, size_t panel, struct nb_strbuf *out) {
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

void nb_figure_data(const struct nb_figure *f, struct nb_strbuf *out) {
    add_remark(out, "", f->title);
    add_remark(out, "", f->subtitle);
    add_remark(out, "", f->footer);
    for (size_t i = 0; i < f->n_lines; i++) {
        const struct nb_line *line = &f->lines[i];
        if (i) nb_strbuf_add(out, "\n\n");
        add_remark(out, "panel: ", f->panels[line->panel].title);
        add_remark(out, line->law ? "predicted: " : "line: ", f->entries.items[line->entry]);
        nb_strbuf_addf(out, "# x = %s, y = %s, low, high, too noisy to rank\n", f->panels[line->panel].x_title,
                       f->panels[line->panel].y_title ? f->panels[line->panel].y_title : "place");
        for (size_t p = 0; p < line->n; p++) {
            const double values[] = {line->points[p].x, line->points[p].y, line->points[p].low, line->points[p].high};
            for (size_t v = 0; v < 4; v++) add_number(out, values[v]);
            nb_strbuf_add(out, line->points[p].noisy ? " 1\n" : " 0\n");
        }
    }
    for (size_t p = 0; p < f->n_panels; p++) add_heat_data(f, p, out);
}

/* ---- axes -------------------------------------------------------------------------------------------------------- */

/* gnuplot would choose ticks such as 2000 for row lengths and end a range in the middle of a tick, so ranges and ticks are
 * computed here from the data. */

/* Garbage that a failed kernel returned must not stretch an axis until it has no ticks. */
static const double BEYOND_DRAWING = 1e100;

struct range {
    double least, most, least_positive;
};

/* Each point `at` of each `line` of a panel; there may be none, and no array. */
#define for_points(at, line, f, panel_of)                                                                              \
    for (const struct nb_line *line = (f)->lines; line && line < (f)->lines + (f)->n_lines; line++)                    \
        for (const struct nb_point *at = line->points; line->panel == (panel_of) && at < line->points + line->n; at++)

static void widen(struct range *r, double value) {
    if (!(fabs(value) < BEYOND_DRAWING)) return;
    r->least = fmin(r->least, value);
    r->most = fmax(r->most, value);
    if (value > 0) r->least_positive = fmin(r->least_positive, value);
}

static bool is_linear(enum nb_scale scale) {
    return scale == NB_SCALE_LINEAR || scale == NB_SCALE_PERCENT || scale == NB_SCALE_SHARE;
}

/* One spike must not flatten all the curves of a linear axis: where leaving out the farthest points, one in twenty at either end, makes
 * the axis a quarter as long or less, it ends half that length beyond the others, and add_spikes() says what lies there. */
static void leave_out_spikes(struct range *r, const struct nb_figure *f, size_t panel) {
    enum { FEWEST = 8, ONE_IN = 20 };
    double *values freed = NULL;
    size_t n = 0;
    for_points(at, line, f, panel) * NB_PUSH(values, n) = at->y;
    if (n >= FEWEST) {
        const size_t k = 1 + n / ONE_IN;
        nb_sort(values, n);
        const double low = fmin(values[k], 0), high = fmax(values[n - 1 - k], 0), span = high - low;
        if (span > 0 && fmax(r->most, 0) - fmin(r->least, 0) >= 4 * span) {
            r->least = fmax(r->least, low - span / 2);
            r->most = fmin(r->most, high + span / 2);
        }
    }
}

/* The interval of a noisy case widens a linear axis by as much as its points take, and goes on beyond it. */
static void widen_by_intervals(struct range *r, const struct nb_figure *f, size_t panel, bool linear) {
    const double span = r->most - r->least, room = linear && span > 0 ? span : INFINITY;
    const double least = r->least - room, most = r->most + room;
    for_points(at, line, f, panel) {
        if (isfinite(at->low)) widen(r, fmax(at->low, least));
        if (isfinite(at->high)) widen(r, fmin(at->high, most));
    }
}

static struct range range_of(const struct nb_figure *f, size_t panel, bool x_axis) {
    const struct nb_panel *p = &f->panels[panel];
    const bool linear = is_linear(x_axis ? p->x_scale : p->y_scale);
    struct range r = {INFINITY, -INFINITY, INFINITY};
    for_points(at, line, f, panel) widen(&r, x_axis ? at->x : at->y);
    if (linear && !x_axis && !f->names.n) leave_out_spikes(&r, f, panel);
    if (x_axis == (f->names.n > 0)) widen_by_intervals(&r, f, panel, linear);
    for (size_t i = 0; x_axis && f->names.n && i < f->n_guides; i++) widen(&r, f->guides[i].x);
    const struct nb_heat *heat = &f->heats[panel];
    for (size_t i = 0; i < (x_axis ? heat->n_x : heat->n_y); i++) widen(&r, x_axis ? heat->x[i] : heat->y[i]);
    if (r.least > r.most) r.least = 0, r.most = 1;
    if (!isfinite(r.least_positive)) r.least_positive = 1e-3;
    return r;
}

static void add_tick(struct nb_strbuf *out, double at, enum nb_scale scale, bool first) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    if (scale == NB_SCALE_BYTES)
        nb_format_bytes(&text, at);
    else
        nb_strbuf_addf(&text, "%.0f", at);
    nb_strbuf_add(out, first ? "" : ", ");
    nb_escape_gnuplot(out, text.text);
    nb_strbuf_addf(out, " %.17g", at);
}

/* Labels at every 2^(k step), at most about six of them; small ticks at the other powers of two. */
static void add_power_ticks(char axis, const struct range *r, enum nb_scale scale, struct nb_strbuf *out) {
    int first = (int)ceil(log2(r->least_positive) - 1e-9), last = (int)floor(log2(r->most) + 1e-9);
    int step = (last - first) / 6 + 1;
    if (scale == NB_SCALE_BYTES && step < 2) step = 2;
    bool empty = true;
    nb_strbuf_addf(out, "  set %ctics (", axis);
    for (int e = first; e <= last; e++) {
        if ((e - first) % step == 0)
            add_tick(out, ldexp(1, e), scale, empty);
        else
            nb_strbuf_addf(out, "%s'' %.17g 1", empty ? "" : ", ", ldexp(1, e));
        empty = false;
    }
    if (empty) add_tick(out, r->most, scale, true);
    nb_strbuf_add(out, ")\n");
}

/* Ticks at the data's own row lengths, when they are few; one that would stand too near to its neighbour has no label. */
static bool add_own_ticks(const struct nb_figure *f, size_t panel, const struct range *r, struct nb_strbuf *out) {
    enum { MOST = 10 };
    double lengths[MOST], label = 0, nearest = 0.09; /* in parts of the axis */
    size_t n = 0;
    for_points(at, line, f, panel) {
        size_t known = 0;
        while (known < n && lengths[known] != at->x) known++;
        if (known < n) continue;
        if (n == MOST || at->x <= 0) return false;
        lengths[n++] = at->x;
    }
    if (n == 0) return false;
    nb_sort(lengths, n);
    nb_strbuf_add(out, "  set xtics (");
    for (size_t k = 0; k < n; k++) {
        bool far = k == 0 || log(lengths[k] / label) > nearest * log(r->most / r->least_positive);
        if (far) label = lengths[k];
        if (far)
            add_tick(out, label, NB_SCALE_LENGTH, k == 0);
        else
            nb_strbuf_addf(out, ", '' %.17g 1", lengths[k]);
    }
    nb_strbuf_add(out, ")\n");
    return true;
}

static void add_log2(const struct nb_figure *f, size_t panel, char axis, const struct range *r, enum nb_scale scale,
                     struct nb_strbuf *out) {
    nb_strbuf_addf(out, "  set logscale %c 2\n  set %crange [%.17g:%.17g]\n", axis, axis, r->least_positive / 1.2,
                   fmax(r->most, r->least_positive) * 1.2);
    struct nb_strbuf own released_by(nb_strbuf_release) = {0};
    bool few = scale == NB_SCALE_LENGTH && axis == 'x' && add_own_ticks(f, panel, r, &own);
    if (few)
        nb_strbuf_add(out, own.text);
    else
        add_power_ticks(axis, r, scale, out);
}

/* "0.02", "200", "1e+06". */
static void add_decade_tick(struct nb_strbuf *out, int factor, int e, const char *label, const char *separator) {
    nb_strbuf_addf(out, "%s'", separator);
    if (label) nb_strbuf_addf(out, label, factor * pow(10, e));
    nb_strbuf_addf(out, "' %de%d%s", factor, e, label ? "" : " 1");
}

/* The range is the data's own: ticks at decades, or, where it has fewer than three, at 1 and 3 or 1, 2 and 5 of each. */
static void add_decades(char axis, const struct range *r, struct nb_strbuf *out) {
    enum { MOST = 24 }; /* are shown, the upper ones */
    const double high = log10(fmax(r->most, r->least_positive)), least = log10(r->least_positive);
    const double pad = fmax(0.06 * (high - least), 0.08);
    /* What is 0 is drawn at the lower end, away from the rest. */
    const double low = fmax(fmax(least - (r->least <= 0 ? 1 : pad), high - MOST), -300);
    const int first = (int)ceil(low), last = (int)floor(high + pad), step = (last - first) / 5 + 1;
    const bool few = last - first < 2;
    const char *separator = "";
    nb_strbuf_addf(out, "  LEAST_%c = %.6g\n  set logscale %c 10\n  set %crange [LEAST_%c:%.6g]\n  set %ctics (", axis,
                   pow(10, low), axis, axis, axis, pow(10, high + pad), axis);
    static const int finest[] = {1, 2, 5}, fine[] = {1, 3};
    const bool narrow = high + pad - low <= 1.2;
    const int *factors = narrow ? finest : fine, n_factors = !few ? 1 : narrow ? 3 : 2;
    for (int e = few ? first - 1 : first; e <= last; e++)
        for (int k = 0; k < n_factors; k++) {
            const double at = log10(factors[k]) + e;
            if (at < low || at > high + pad) continue;
            const bool named = few || (last - e) % step == 0;
            add_decade_tick(out, factors[k], e, !named ? NULL : e > -4 && e < 5 ? "%g" : "%.0e", separator);
            separator = ", ";
        }
    nb_strbuf_add(out, *separator ? ")\n" : "'' 1)\n");
}

/* Labels at multiples of a power of two, at most about eight of them. */
static void add_powers(char axis, const struct range *r, double pad, struct nb_strbuf *out) {
    const double low = r->least - pad, high = r->most + pad;
    long step = 1;
    while ((high - low) / (double)step > 8 && step < 1L << 40) step *= 2;
    nb_strbuf_addf(out, "  set %crange [%.17g:%.17g]\n  set %ctics (", axis, low, high, axis);
    const char *separator = "";
    for (double e = ceil(low / (double)step) * (double)step; e <= high; e += (double)step) {
        nb_strbuf_addf(out, fabs(e) <= 3 ? "%s'%.6g' %.0f" : "%s'2^%.0f' %.0f", separator, fabs(e) <= 3 ? exp2(e) : e,
                       e);
        separator = ", ";
    }
    nb_strbuf_add(out, *separator ? ")\n" : "'' 0)\n");
}

/* About five steps of 1, 2 or 5 times a power of ten. */
static double nice_step(double span) {
    double rough = fmax(span, 1e-100) / 5, power = pow(10, floor(log10(rough))), part = rough / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

static void add_linear(char axis, const struct range *r, enum nb_scale scale, struct nb_strbuf *out) {
    double low = fmin(r->least, 0), high = fmax(r->most, 0);
    if (scale == NB_SCALE_SHARE) high = fmax(high, 100);
    double pad = (high > low ? high - low : 1) * 0.06;
    if (low < 0 || (axis == 'x' && scale == NB_SCALE_PERCENT)) low -= pad;
    high += high > 0 ? pad : 0;
    if (high <= low) high = low + 1;
    bool percent = scale == NB_SCALE_PERCENT || scale == NB_SCALE_SHARE;
    nb_strbuf_addf(out, "  unset logscale %c\n  set %crange [%.17g:%.17g]\n  set %ctics %.17g\n  set format %c '%s'\n",
                   axis, axis, low, high, axis, nice_step(high - low), axis, percent ? "%g%%" : "%g");
}

/* The rows of the figure by name, the first on top. */
static void add_names(const struct nb_figure *f, struct nb_strbuf *out) {
    nb_strbuf_addf(out, "  set yrange [%zu.5:-0.5]\n  set ytics (", f->names.n - 1);
    for (size_t i = 0; i < f->names.n; i++) {
        nb_strbuf_add(out, i ? ", " : "");
        nb_escape_gnuplot(out, f->names.items[i]);
        nb_strbuf_addf(out, " %zu", i);
    }
    nb_strbuf_add(out, ")\n");
}

static void add_axis(const struct nb_figure *f, size_t panel, char axis, enum nb_scale scale, struct nb_strbuf *out) {
    struct range r = range_of(f, panel, axis == 'x');
    nb_strbuf_addf(out, "  unset logscale %c\n", axis);
    if (scale == NB_SCALE_LENGTH || scale == NB_SCALE_BYTES)
        add_log2(f, panel, axis, &r, scale, out);
    else if (scale == NB_SCALE_DECADES)
        add_decades(axis, &r, out);
    else if (scale == NB_SCALE_POWERS)
        add_powers(axis, &r, f->heats[panel].n_x ? half_step(&f->heats[panel], axis == 'x') : 0.5, out);
    else if (scale == NB_SCALE_NAMES)
        add_names(f, out);
    else
        add_linear(axis, &r, scale, out);
}

/* Lines that a reader compares with: 0, 100 %, the caches, the copy. Their words stand above the panel. */
static void add_guides(const struct nb_figure *f, size_t panel, struct nb_strbuf *out) {
    const struct nb_panel *p = &f->panels[panel];
    const char *style = "nohead back lc rgb '#999999' lw 1 dt 1";
    if (p->y_scale == NB_SCALE_SHARE || p->y_scale == NB_SCALE_PERCENT)
        nb_strbuf_addf(out, "  set arrow from graph 0, first %d to graph 1, first %d %s\n",
                       p->y_scale == NB_SCALE_SHARE ? 100 : 0, p->y_scale == NB_SCALE_SHARE ? 100 : 0, style);
    if (p->x_scale == NB_SCALE_PERCENT)
        nb_strbuf_addf(out, "  set arrow from first 0, graph 0 to first 0, graph 1 %s\n", style);
    struct range r = range_of(f, panel, true);
    for (size_t i = 0; i < f->n_guides; i++) {
        const struct nb_guide *g = &f->guides[i];
        if (!(g->x >= r.least_positive && g->x <= r.most)) continue;
        nb_strbuf_addf(out, "  set arrow from first %.17g, graph 0 to first %.17g, graph 1 %s\n  set label ", g->x,
                       g->x, style);
        nb_escape_gnuplot(out, g->label);
        nb_strbuf_addf(
            out, " at first %.17g, graph 1 center offset 0,0.5 font ',10' textcolor rgb '#777777' noenhanced\n", g->x);
    }
}

/* What lies beyond a linear axis, where the line to it leaves the picture. */
static void add_spikes(const struct nb_figure *f, size_t panel, const size_t *chosen, struct nb_strbuf *out) {
    const enum nb_scale scale = f->panels[panel].y_scale;
    const struct range r = range_of(f, panel, false);
    for_points(at, line, f, panel) {
        if (!is_linear(scale) || line->law || !(at->y < r.least || at->y > r.most)) continue;
        nb_strbuf_addf(out,
                       "  set label '%s %.3g%s' at first %.17g, graph %s center font ',9' textcolor rgb '%s' "
                       "noenhanced\n",
                       at->y > r.most ? "↑" : "↓", at->y, scale == NB_SCALE_LINEAR ? "" : "%", at->x,
                       at->y > r.most ? "0.99" : "0.02", looks[chosen[line->entry]].color);
    }
}

/* ---- the layout: panels below each other, the legend below them, so that a phone shows all of it ------------------------ */

enum {
    WIDTH = 520,
    RIGHT = 18,
    TOP = 74, /* 16 more where panels have titles */
    PANEL = 230,
    BETWEEN = 82, /* panels: the titles of two axes */
    LEGEND_TOP = 66,
    LINE = 19,
    FOOT = 26,
    CHARACTER_WIDTH = 7
};

struct layout {
    int left, top, panel, legend, n_columns, height; /* legend: where it begins, from above */
    size_t n_items;
    size_t *chosen; /* looks of the entries */
};

static bool is_drawn_state(const struct nb_figure *f, int state) {
    bool drawn = false;
    for (size_t p = 0; p < f->n_panels; p++) drawn |= has_state(&f->heats[p], state);
    return drawn;
}

static bool has_noise(const struct nb_figure *f) {
    for (size_t i = 0; i < f->n_lines; i++)
        for (size_t p = 0; p < f->lines[i].n; p++)
            if (f->lines[i].points[p].noisy) return true;
    return false;
}

/* Widest text in terminal cells, as far as a picture gives it room. */
static int widest(const struct nb_strings *texts) {
    size_t most = 4;
    for (size_t i = 0; i < texts->n; i++)
        if (nb_utf8_cells(texts->items[i]) > most) most = nb_utf8_cells(texts->items[i]);
    return most < 48 ? (int)most : 48;
}

static void lay_out(struct layout *l, const struct nb_figure *f) {
    const int n = f->n_panels ? (int)f->n_panels : 1;
    *l = (struct layout){.left = f->names.n ? 24 + CHARACTER_WIDTH * widest(&f->names) : 66};
    l->chosen = nb_alloc(f->entries.n + 1, sizeof *l->chosen);
    choose_looks(f, l->chosen);
    for (size_t e = 0; e < f->entries.n; e++) l->n_items += !is_named(f, e);
    l->panel = f->names.n ? (l->n_items ? 42 : 20) * (int)f->names.n + 12 : PANEL;
    for (int s = NB_HEAT_VALUE + 1; s < NB_N_HEAT_STATES; s++) l->n_items += is_drawn_state(f, s);
    l->n_columns = (WIDTH - 32) / (40 + CHARACTER_WIDTH * widest(&f->entries));
    if (l->n_columns < 1) l->n_columns = 1;
    const int scale = nb_heat_is_in(f) ? 72 : 0, noise = has_noise(f) ? LINE : 0;
    l->top = TOP + (f->panels[0].title ? 16 : 0);
    l->legend = l->top + n * l->panel + (n - 1) * BETWEEN + LEGEND_TOP + scale;
    l->height = l->legend + LINE * (((int)l->n_items + l->n_columns - 1) / l->n_columns) + noise + FOOT;
}

static void add_quoted(struct nb_strbuf *out, const char *text, size_t cells) {
    struct nb_strbuf cut released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(&cut, text ? text : "");
    nb_utf8_cut(&cut, cells, "…");
    nb_escape_gnuplot(out, cut.text);
}

/* Label texts come from outside, the format is ours. y: from above. */
static void add_label(struct nb_strbuf *out, int x, int y, int size, const char *color, const char *text,
                      size_t cells) {
    nb_strbuf_add(out, "  set label ");
    add_quoted(out, text, cells);
    nb_strbuf_addf(out, " at screen %d./W, 1 - %d./H left font ',%d' textcolor rgb '%s' noenhanced\n", x, y, size,
                   color);
}

static void add_device(const struct nb_figure *f, const struct layout *l, struct nb_strbuf *out) {
    nb_strbuf_addf(out, "W = %d\nH = %d\n", WIDTH, l->height);
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

/* Dashed is what is predicted, and nothing else. */
static void add_styles(const struct nb_figure *f, const struct layout *l, struct nb_strbuf *out) {
    for (size_t e = 0; e < f->entries.n; e++)
        nb_strbuf_addf(out, "  set style line %zu lc rgb '%s' lw 1.8 dt 1 pt %d ps 0.75\n", e + 1,
                       looks[l->chosen[e]].color, looks[l->chosen[e]].shape);
}

static void add_margins(const struct layout *l, size_t panel, struct nb_strbuf *out) {
    const int top = l->top + (int)panel * (l->panel + BETWEEN);
    nb_strbuf_addf(out,
                   "  set lmargin at screen %d./W\n  set rmargin at screen 1 - %d./W\n"
                   "  set tmargin at screen 1 - %d./H\n  set bmargin at screen 1 - %d./H\n",
                   l->left, RIGHT, top, top + l->panel);
}

/* ---- the legend: drawn by us, since gnuplot leaves out what it finds no room for ---------------------------------------- */

/* Has a line of the entry been measured? */
static bool is_measured(const struct nb_figure *f, size_t entry) {
    for (size_t i = 0; i < f->n_lines; i++)
        if (f->lines[i].entry == entry && !f->lines[i].law) return true;
    return false;
}

static void add_item(const struct layout *l, size_t *n, const char *text, const char *point, struct nb_strbuf *out) {
    const int column = (int)(*n % (size_t)l->n_columns), row = (int)(*n / (size_t)l->n_columns);
    const int x = 24 + column * ((WIDTH - 32) / l->n_columns), y = l->legend + row * LINE;
    ++*n;
    if (*point == 'l')
        nb_strbuf_addf(out,
                       "  set arrow from screen %d./W, screen 1 - %d./H to screen %d./W, screen 1 - %d./H nohead %s\n",
                       x - 8, y, x + 8, y, point);
    nb_strbuf_addf(out, "  set label '' at screen %d./W, 1 - %d./H point %s\n", x, y, *point == 'l' ? "pt -1" : point);
    add_label(out, x + 14, y, 11, "#222222", text, 48);
}

static void add_legend(const struct nb_figure *f, const struct layout *l, struct nb_strbuf *out) {
    char point[96];
    size_t n = 0;
    for (size_t e = 0; e < f->entries.n; e++) {
        const size_t look = l->chosen[e];
        if (is_named(f, e)) continue;
        if (is_measured(f, e))
            snprintf(point, sizeof point, "pt %d ps 0.9 lc rgb '%s'", looks[look].shape, looks[look].color);
        else
            snprintf(point, sizeof point, "lc rgb '%s' lw 1.8 dt 2", looks[look].color);
        add_item(l, &n, f->entries.items[e], point, out);
    }
    for (int s = NB_HEAT_VALUE + 1; s < NB_N_HEAT_STATES; s++) {
        if (!is_drawn_state(f, s)) continue;
        snprintf(point, sizeof point, "pt 5 ps 1.4 lc rgb '%s'", states[s].color);
        add_item(l, &n, states[s].name, point, out);
    }
    if (has_noise(f)) add_label(out, 16, l->height - FOOT - LINE / 2, 10, "#555555", "hollow: too noisy to rank", 48);
}

/* ---- curves ---------------------------------------------------------------------------------------------------------- */

/* A column; on an axis that cannot show 0 what is less is drawn at its lower end. */
static void add_column(const struct nb_panel *p, int column, bool of_x, struct nb_strbuf *out) {
    const char axis = of_x ? 'x' : 'y';
    if ((of_x ? p->x_scale : p->y_scale) == NB_SCALE_DECADES)
        nb_strbuf_addf(out, "($%d > LEAST_%c ? $%d : LEAST_%c)", column, axis, column, axis);
    else
        nb_strbuf_addf(out, "($%d)", column);
}

/* Columns x and y of a line; which: 0 or 1 takes points of that noise alone, else all. */
static void add_using(const struct nb_figure *f, size_t line, int which, struct nb_strbuf *out) {
    const struct nb_panel *p = &f->panels[f->lines[line].panel];
    nb_strbuf_addf(out, "'%s.dat' index %zu using ", f->name, line);
    add_column(p, 1, true, out);
    nb_strbuf_add(out, ":");
    if (which >= 0) nb_strbuf_addf(out, "($5 == %d ? ", which);
    add_column(p, 2, false, out);
    if (which >= 0) nb_strbuf_add(out, " : NaN)");
}

static void add_intervals(const struct nb_figure *f, size_t line, struct nb_strbuf *out) {
    const struct nb_panel *p = &f->panels[f->lines[line].panel];
    const bool of_x = f->names.n > 0;
    add_using(f, line, -1, out);
    for (int column = 3; column <= 4; column++) {
        nb_strbuf_add(out, ":");
        add_column(p, column, of_x, out);
    }
    nb_strbuf_addf(out, " with %cerrorbars ls %zu lw 1.2 dt 1 pt -1 notitle, \\\n       ", of_x ? 'x' : 'y',
                   f->lines[line].entry + 1);
}

/* On a heat map a white line below keeps a law from drowning in the colours. */
static void add_law(const struct nb_figure *f, size_t line, struct nb_strbuf *out) {
    const size_t style = f->lines[line].entry + 1;
    if (f->heats[f->lines[line].panel].n_x) {
        add_using(f, line, -1, out);
        nb_strbuf_add(out, " with lines lc rgb '#ffffff' lw 2.6 dt 1 notitle, \\\n       ");
    }
    add_using(f, line, -1, out);
    nb_strbuf_addf(out, " with lines ls %zu dt 2 notitle", style);
}

/* Solid points, and hollow ones of the same shape. */
static void add_line(const struct nb_figure *f, const struct layout *l, size_t line, struct nb_strbuf *out) {
    const size_t entry = f->lines[line].entry;
    if (f->lines[line].law) return add_law(f, line, out);
    add_intervals(f, line, out);
    if (!f->scattered) {
        add_using(f, line, -1, out);
        nb_strbuf_addf(out, " with lines ls %zu notitle, \\\n       ", entry + 1);
    }
    for (int noisy = 0; noisy < 2; noisy++) {
        add_using(f, line, noisy, out);
        nb_strbuf_addf(out, " with points ls %zu pt %d notitle%s", entry + 1, looks[l->chosen[entry]].shape - noisy,
                       noisy ? "" : ", \\\n       ");
    }
}

static const char palette[] = "  set palette defined (0 '#fbfcd8', 0.2 '#c3e6b8', 0.4 '#6fc2b4', 0.6 '#2f8fae', 0.8 "
                              "'#24528c', 1 '#141a44')\n";

/* One colour scale for all panels, between them and the legend. */
static void add_palette(const struct nb_figure *f, const struct layout *l, size_t panel, struct nb_strbuf *out) {
    if (!nb_heat_is_in(f)) return;
    nb_strbuf_add(out, palette);
    nb_strbuf_addf(out, "  set cbrange [%.17g:%.17g]\n", f->heat_low, f->heat_high);
    if (panel + 1 < f->n_panels) return nb_strbuf_add(out, "  unset colorbox\n");
    nb_strbuf_addf(out,
                   "  set colorbox horizontal user origin screen %d./W, 1 - %d./H size screen 240./W, 12./H\n"
                   "  set cbtics 2 font ',9'\n  set cblabel ",
                   l->left, l->legend - 62);
    nb_escape_gnuplot(out, f->heat_title ? f->heat_title : "");
    nb_strbuf_add(out, " font ',10' offset 0,0.6 noenhanced\n");
}

static void add_heat(const struct nb_figure *f, size_t panel, const char **separator, struct nb_strbuf *out) {
    for (int s = 0; s < NB_N_HEAT_STATES; s++) {
        if (!has_state(&f->heats[panel], s)) continue;
        nb_strbuf_addf(out, "%s'%s.dat' index %zu using 1:2:3:4%s with boxxyerror fs solid noborder ", *separator,
                       f->name, block_of(f, panel, s), s ? "" : ":5");
        nb_strbuf_addf(out, s ? "fc rgb '%s' notitle" : "fc palette notitle", states[s].color);
        *separator = ", \\\n       ";
    }
}

static void add_curves(const struct nb_figure *f, const struct layout *l, size_t panel, struct nb_strbuf *out) {
    const char *separator = "  plot ";
    add_heat(f, panel, &separator, out);
    for (size_t i = 0; i < f->n_lines; i++) {
        if (f->lines[i].panel != panel) continue;
        nb_strbuf_add(out, separator);
        add_line(f, l, i, out);
        separator = ", \\\n       ";
    }
    nb_strbuf_add(out, *separator == ',' ? "\n" : "  plot NaN notitle\n"); /* a panel without data is still drawn */
}

static void add_panel(const struct nb_figure *f, const struct layout *l, size_t panel, struct nb_strbuf *out) {
    const struct nb_panel *p = &f->panels[panel];
    add_margins(l, panel, out);
    nb_strbuf_add(out, "  set title ");
    add_quoted(out, p->title, 80);
    nb_strbuf_add(out, " font ',12' offset 0,-0.4 noenhanced\n  set xlabel ");
    add_quoted(out, p->x_title, 80);
    nb_strbuf_add(out, " offset 0,0.3 noenhanced\n  set ylabel ");
    add_quoted(out, p->y_title, 80);
    nb_strbuf_add(out, " noenhanced offset 1,0\n");
    add_axis(f, panel, 'x', p->x_scale, out);
    add_axis(f, panel, 'y', p->y_scale, out);
    add_guides(f, panel, out);
    add_spikes(f, panel, l->chosen, out);
    add_palette(f, l, panel, out);
    add_curves(f, l, panel, out);
    nb_strbuf_add(out, "  unset label\n  unset arrow\n");
}

void nb_figure_script(const struct nb_figure *f, struct nb_strbuf *out) {
    struct layout l;
    lay_out(&l, f);
    nb_strbuf_addf(out, "# Draws %s.svg and %s.png from %s.dat: gnuplot %s.gp, here.\n", f->name, f->name, f->name,
                   f->name);
    nb_strbuf_add(out, "reset\nset encoding utf8\nset datafile missing '?'\nset errorbars small\n");
    add_device(f, &l, out);
    add_styles(f, &l, out);
    nb_strbuf_add(out, "  set border 3 lc rgb '#444444' lw 1\n"
                       "  set tics nomirror out scale 0.6 textcolor rgb '#222222' font ',10'\n"
                       "  set grid xtics ytics back lc rgb '#d8d8d8' lw 0.8 dt 1\n"
                       "  unset key\n"
                       "  set multiplot\n");
    add_label(out, 14, 25, 14, "#111111", f->title, 60);
    add_label(out, 14, 48, 10, "#555555", f->subtitle, 84);
    add_label(out, 14, l.height - 10, 9, "#777777", f->footer, 84);
    add_legend(f, &l, out);
    for (size_t p = 0; p < f->n_panels; p++) add_panel(f, &l, p, out);
    nb_strbuf_add(out, "  unset multiplot\n  unset output\n}\n");
    free(l.chosen);
}
