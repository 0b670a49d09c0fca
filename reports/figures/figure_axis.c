// SPDX-License-Identifier: Apache-2.0
/* Axes. gnuplot would choose ticks such as 2000 for row lengths and end a range in the middle of a tick, so ranges and ticks are
 * computed here from the data. */
#include "reports/figures/figure_axis.h"

#include <math.h>
#include <stdlib.h>

#include "reports/figures/figure.h"
#include "reports/text/escape.h"
#include "reports/text/format.h"

/* Garbage that a failed kernel returned must not stretch an axis until it has no ticks. */
static const double BEYOND_DRAWING = 1e100;

struct range {
    double least, most, least_positive;
};

static void widen(struct range *r, double value) {
    if (!(fabs(value) < BEYOND_DRAWING)) return;
    r->least = fmin(r->least, value);
    r->most = fmax(r->most, value);
    if (value > 0) r->least_positive = fmin(r->least_positive, value);
}

static struct range range_of(const struct nb_figure *f, size_t panel, bool x_axis) {
    struct range r = {INFINITY, -INFINITY, INFINITY};
    bool interval_here = x_axis == (f->panels[panel].y_scale == NB_SCALE_NAMES);
    for (size_t i = 0; i < f->n_lines; i++) {
        const struct nb_line *line = &f->lines[i];
        for (size_t p = 0; line->panel == panel && p < line->n; p++) {
            widen(&r, x_axis ? line->points[p].x : line->points[p].y);
            if (interval_here) widen(&r, line->points[p].low);
            if (interval_here) widen(&r, line->points[p].high);
        }
    }
    const struct nb_heat *heat = &f->heats[panel];
    for (size_t i = 0; i < (x_axis ? heat->n_x : heat->n_y); i++) widen(&r, x_axis ? heat->x[i] : heat->y[i]);
    if (r.least > r.most) r.least = 0, r.most = 1;
    if (!isfinite(r.least_positive)) r.least_positive = 1e-3;
    return r;
}

static void add_tick(struct nb_strbuf *out, double at, enum nb_scale scale, bool first) {
    struct nb_strbuf text = {0};
    if (scale == NB_SCALE_BYTES)
        nb_format_bytes(&text, at);
    else
        nb_strbuf_addf(&text, "%.0f", at);
    nb_strbuf_add(out, first ? "" : ", ");
    nb_escape_gnuplot(out, text.text);
    nb_strbuf_addf(out, " %.17g", at);
    nb_strbuf_release(&text);
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

static int by_value(const void *left, const void *right) {
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* Ticks at the data's own row lengths, when they are few; one that would stand too near to its neighbour has no label. */
static bool add_own_ticks(const struct nb_figure *f, size_t panel, const struct range *r, struct nb_strbuf *out) {
    enum { MOST = 10 };
    double lengths[MOST], label = 0, nearest = f->n_panels > 1 ? 0.12 : 0.07; /* in parts of the axis */
    size_t n = 0;
    for (size_t i = 0; i < f->n_lines; i++)
        for (size_t p = 0; f->lines[i].panel == panel && p < f->lines[i].n; p++) {
            double x = f->lines[i].points[p].x;
            size_t known = 0;
            while (known < n && lengths[known] != x) known++;
            if (known < n) continue;
            if (n == MOST || x <= 0) return false;
            lengths[n++] = x;
        }
    if (n == 0) return false;
    qsort(lengths, n, sizeof *lengths, by_value);
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
    struct nb_strbuf own = {0};
    bool few = scale == NB_SCALE_LENGTH && axis == 'x' && add_own_ticks(f, panel, r, &own);
    if (few)
        nb_strbuf_add(out, own.text);
    else
        add_power_ticks(axis, r, scale, out);
    nb_strbuf_release(&own);
}

/* most: decades that are shown, the upper ones. */
static void add_decades(char axis, const struct range *r, double most, struct nb_strbuf *out) {
    double low = floor(log10(r->least_positive) - 0.05), high = ceil(log10(fmax(r->most, r->least_positive)) + 0.05);
    low = fmax(fmax(low, high - most), -300);
    int first = (int)low, last = (int)high, step = (last - first) / 5 + 1;
    nb_strbuf_addf(out, "  LEAST_%c = 1e%d\n  set logscale %c 10\n  set %crange [LEAST_%c:1e%d]\n  set %ctics (", axis,
                   first, axis, axis, axis, last, axis);
    for (int e = first; e <= last; e++) {
        const char *separator = e == first ? "" : ", ";
        if ((last - e) % step)
            nb_strbuf_addf(out, "%s'' 1e%d 1", separator, e);
        else
            nb_strbuf_addf(out, e > -4 && e < 5 ? "%s'%g' 1e%d" : "%s'%.0e' 1e%d", separator, pow(10, e), e);
    }
    nb_strbuf_add(out, ")\n");
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

/* Errors of a raw reciprocal estimate are thousands of times those of its neighbours: asinh shows both, and the sign. */
static void add_signed(char axis, const struct range *r, struct nb_strbuf *out) {
    const double linear = 0.1; /* asinh is straight up to about here */
    double most = fmax(fmax(fabs(r->least), fabs(r->most)), linear);
    int top = (int)fmin(floor(log10(1.3 * most)), 100), step = top <= 2 ? 1 : top / 3 + 1;
    nb_strbuf_addf(out,
                   "  set nonlinear %c via asinh(%c/%g)/log(10) inverse %g*sinh(%c*log(10))\n"
                   "  set %crange [%.17g:%.17g]\n  set %ctics ('0' 0",
                   axis, axis, linear, linear, axis, axis, -1.3 * most, 1.3 * most, axis);
    for (int e = -1; e <= top; e++) {
        bool named = (top - e) % step == 0 && (e > -1 || top <= 0);
        if (named)
            nb_strbuf_addf(out, ", '-%g' -1e%d, '%g' 1e%d", pow(10, e), e, pow(10, e), e);
        else
            nb_strbuf_addf(out, ", '' -1e%d 1, '' 1e%d 1", e, e);
    }
    nb_strbuf_add(out, ")\n");
}

/* About five steps of 1, 2 or 5 times a power of ten. */
static double nice_step(double span) {
    double rough = fmax(span, 1e-100) / 5, power = pow(10, floor(log10(rough))), part = rough / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

static void add_linear(char axis, const struct range *r, enum nb_scale scale, struct nb_strbuf *out) {
    double low = fmin(r->least, 0), high = fmax(r->most, 0);
    if (scale == NB_SCALE_ROOF) high = fmax(high, 100);
    double pad = (high > low ? high - low : 1) * 0.06;
    if (low < 0) low -= pad;
    high += high > 0 ? pad : 0;
    if (high <= low) high = low + 1;
    bool percent = scale == NB_SCALE_PERCENT || scale == NB_SCALE_ROOF;
    nb_strbuf_addf(out, "  unset logscale %c\n  set %crange [%.17g:%.17g]\n  set %ctics %.17g\n  set format %c '%s'\n",
                   axis, axis, low, high, axis, nice_step(high - low), axis, percent ? "%g %%" : "%g");
}

/* Panels that share the axis of names say the names once, in the first. */
static void add_names(const struct nb_figure *f, size_t panel, struct nb_strbuf *out) {
    struct nb_strbuf name = {0};
    nb_strbuf_addf(out, "  set yrange [%zu.5:-0.5]\n  set ytics (", f->n_names ? f->n_names - 1 : 0);
    for (size_t i = 0; i < f->n_names; i++) {
        nb_strbuf_clear(&name);
        nb_strbuf_add(&name, panel == 0 ? f->names[i] : "");
        nb_utf8_cut(&name, 48, "…");
        nb_strbuf_add(out, i ? ", " : "");
        nb_escape_gnuplot(out, name.text);
        nb_strbuf_addf(out, " %zu", i);
    }
    nb_strbuf_add(out, f->n_names ? ") noenhanced\n" : "'' 0)\n");
    nb_strbuf_release(&name);
}

static void add_axis(const struct nb_figure *f, size_t panel, char axis, enum nb_scale scale, struct nb_strbuf *out) {
    struct range r = range_of(f, panel, axis == 'x');
    nb_strbuf_addf(out, "  unset nonlinear %c\n  unset logscale %c\n", axis, axis);
    switch (scale) {
    case NB_SCALE_LENGTH:
    case NB_SCALE_BYTES:
        add_log2(f, panel, axis, &r, scale, out);
        break;
    case NB_SCALE_DECADES:
        add_decades(axis, &r, f->n_names ? 12 : 24, out);
        break;
    case NB_SCALE_SIGNED:
        add_signed(axis, &r, out);
        break;
    case NB_SCALE_NAMES:
        add_names(f, panel, out);
        break;
    case NB_SCALE_POWERS:
        add_powers(axis, &r, f->heats[panel].n_x ? nb_heat_half_step(&f->heats[panel], axis == 'x') : 0.5, out);
        break;
    default:
        add_linear(axis, &r, scale, out);
    }
}

/* Lines that a reader compares with: 0, the roof, the caches. */
static void add_guides(const struct nb_figure *f, size_t panel, struct nb_strbuf *out) {
    const struct nb_panel *p = &f->panels[panel];
    const char *style = "nohead back lc rgb '#999999' lw 1 dt 2";
    if (p->y_scale == NB_SCALE_ROOF || p->y_scale == NB_SCALE_PERCENT || p->y_scale == NB_SCALE_SIGNED)
        nb_strbuf_addf(out, "  set arrow from graph 0, first %d to graph 1, first %d %s\n",
                       p->y_scale == NB_SCALE_ROOF ? 100 : 0, p->y_scale == NB_SCALE_ROOF ? 100 : 0, style);
    if (p->x_scale == NB_SCALE_SIGNED)
        nb_strbuf_addf(out, "  set arrow from first 0, graph 0 to first 0, graph 1 %s\n", style);
    struct range r = range_of(f, panel, true);
    for (size_t i = 0; i < f->n_guides; i++) {
        const struct nb_guide *g = &f->guides[i];
        const double least = p->x_scale == NB_SCALE_POWERS ? r.least : r.least_positive;
        if (!(g->x > least && g->x < r.most) || (g->upright && g->panel != panel)) continue;
        nb_strbuf_addf(out, "  set arrow from first %.17g, graph 0 to first %.17g, graph 1 %s\n  set label ", g->x,
                       g->x, style);
        nb_escape_gnuplot(out, g->label);
        nb_strbuf_addf(out, " at first %.17g, graph 0.97 %s font ',%d' textcolor rgb '#777777' noenhanced\n", g->x,
                       g->upright ? "right rotate by 90 offset -0.9,0" : "left offset 0.4,0", g->upright ? 8 : 10);
    }
}

void nb_figure_add_axes(const struct nb_figure *f, size_t panel, struct nb_strbuf *out) {
    const struct nb_panel *p = &f->panels[panel];
    add_axis(f, panel, 'x', p->x_scale, out);
    add_axis(f, panel, 'y', p->y_scale, out);
    add_guides(f, panel, out);
}
