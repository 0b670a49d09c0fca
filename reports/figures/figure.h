// SPDX-License-Identifier: Apache-2.0
/* A figure before it is drawn: panels below each other that share one legend, lines of points with intervals. It is written as
 * a data file that a person can read and a gnuplot script that draws the data as SVG and PNG. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/core/text.h"
#include "src/record/record.h"

#define NB_FIGURE_PANELS 3
#define NB_FIGURE_GUIDES 16

enum nb_scale {
    NB_SCALE_LINEAR,  /* from 0 */
    NB_SCALE_PERCENT, /* values in %, with a line at 0 */
    NB_SCALE_SHARE,   /* values in % of the copy or the roofline, with a line at 100 */
    NB_SCALE_LENGTH,  /* logarithmic, ticks at powers of two or at the data's own lengths */
    NB_SCALE_BYTES,   /* logarithmic, ticks in KiB, MiB */
    NB_SCALE_DECADES, /* logarithmic; 0 is drawn at the lower end */
    NB_SCALE_POWERS,  /* values are exponents of two, ticks say 2^k */
    NB_SCALE_NAMES,   /* of y: the figure's names, the first on top; intervals are of x then */
};

struct nb_point {
    double x, y, low, high; /* the interval is of y; NaN: none */
    bool noisy;             /* too noisy to rank: drawn hollow */
};

struct nb_line {
    size_t panel, entry; /* entry: in the legend, and its colour */
    bool law;            /* predicted, not measured: dashed, without points */
    struct nb_point *points;
    size_t n;
};

struct nb_panel {
    const char *title;
    const char *x_title, *y_title;
    enum nb_scale x_scale, y_scale;
};

/* What a cell of a heat map holds when it is no number. */
enum nb_heat_state {
    NB_HEAT_VALUE,
    NB_HEAT_NAN,
    NB_HEAT_INF,
    NB_HEAT_ZERO,
    NB_HEAT_UNSTORABLE, /* no such row in this dtype */
    NB_HEAT_UNKNOWN,
    NB_N_HEAT_STATES
};

struct nb_heat { /* a heat map: cells under the lines of a panel, [y][x], centred on their places */
    double *x, *y, *value;
    unsigned char *state; /* enum nb_heat_state */
    size_t n_x, n_y;
};

struct nb_guide { /* a vertical line with a word, such as the size of a cache */
    double x;
    const char *label; /* borrowed */
};

struct nb_figure {
    char *name;                                /* of its files, safe */
    char *title, *subtitle, *caption, *footer; /* owned; caption: how to read it, for the page */
    struct nb_panel panels[NB_FIGURE_PANELS];
    size_t n_panels;                        /* 1 in a new figure */
    bool scattered;                         /* measured points are not joined */
    struct nb_heat heats[NB_FIGURE_PANELS]; /* n_x 0: none */
    double heat_low, heat_high;             /* ends of the colour scale, */
    const char *heat_title;                 /* and what it shows */
    struct nb_strings entries;              /* the legend */
    struct nb_strings names;                /* of rows; an entry that is one of them is not in the legend */
    struct nb_line *lines;
    size_t n_lines;
    struct nb_guide guides[NB_FIGURE_GUIDES];
    size_t n_guides;
};

/* name: any text, made safe for a file. */
void nb_figure_init(struct nb_figure *f, const char *name);
void nb_figure_release(struct nb_figure *f);
/* The place of a label in the legend; added when new. */
size_t nb_figure_entry(struct nb_figure *f, const char *label);
/* The same of a row's name. */
size_t nb_figure_name(struct nb_figure *f, const char *name);
/* Appends a point to the line of that label in the panel. A point without a finite x and y is left out. */
void nb_figure_add(struct nb_figure *f, size_t panel, const char *label, struct nb_point point);
/* The same for a line that is predicted. */
void nb_figure_add_law(struct nb_figure *f, size_t panel, const char *label, double x, double y);
/* Points by x, and of two at one x the first. */
void nb_figure_sort(struct nb_figure *f);

/* Columns x, y, low, high, noisy; lines are separated by two blank ones; what is absent is "?". Then, for each panel and state, a block
 * of the heat map's cells: x, y, half width, half height, value. */
void nb_figure_data(const struct nb_figure *f, struct nb_strbuf *out);
void nb_figure_script(const struct nb_figure *f, struct nb_strbuf *out);

bool nb_heat_is_in(const struct nb_figure *f);

/* ---- The families of figures. Each makes the figures that the results allow and says in a note which it could not make, and why. ---- */

struct nb_figures {
    struct nb_figure *list;
    size_t n;
    struct nb_strbuf notes; /* one line each: what is not drawn, and why */
};

void nb_figures_init(struct nb_figures *figures, const struct nb_results *results); /* all families */
void nb_figures_release(struct nb_figures *figures);
/* An empty figure at the end of the list, with the footer of the results. Takes its name over. */
struct nb_figure *nb_figures_new(struct nb_figures *figures, const struct nb_results *results, char *name);
void nb_figures_drop_last(struct nb_figures *figures);
void nb_figures_note(struct nb_figures *figures, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes DIR/FOLDER/: data, scripts and, where gnuplot is there, pictures of the figures, all.gp and README.md. -1 after nb_error. */
int nb_figures_write(const struct nb_figures *figures, const char *dir, const char *folder);
