// SPDX-License-Identifier: Apache-2.0
/* Error by kernel and dtype: for each op one figure with the largest, the mean and the signed error. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/figures/figure.h"
#include "reports/run/view.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/stats.h"

static const char caption[] =
    "A point is the median over the cases of a kernel, its bar reaches from the least to the largest. Errors are "
    "(computed - exact) / ulp(exact), against an oracle in extended precision; the last rounding alone costs up to 0.5 "
    "ulp. "
    "A bias other than 0 means results that are too large or too small on the whole, counted in u, half the dtype's "
    "epsilon. "
    "A value of 0 is drawn at the left edge of a logarithmic axis; the axis of the bias is linear up to about 0.1 and "
    "logarithmic "
    "beyond. Cases with rows whose loss the formula predicts are left out. Cases differ in formula, shape and data, so a long bar is no noise.";

enum { N_FIGURES = 3 };
static double figure_of(const struct nb_accuracy *a, int which) {
    return which == 0 ? a->max_ulp : which == 1 ? a->mean_ulp : a->bias_u;
}

struct selection {
    uint32_t op, pass, dtype;
    const char *kernel; /* null: any */
};

static bool is_selected(const struct nb_record *r, const struct selection *s) {
    struct nb_strbuf kernel = {0};
    if (!r->has_accuracy || r->accuracy.n_rows_lost > 0 || r->c.op != s->op || r->c.pass != s->pass ||
        r->c.dtype != s->dtype)
        return false;
    if (!s->kernel) return true;
    nb_kernel_name(&r->c, &kernel);
    bool same = strcmp(kernel.text, s->kernel) == 0;
    nb_strbuf_release(&kernel);
    return same;
}

/* Median, least and largest of a figure over the selected cases; NaN when none has it. */
static struct nb_interval summarize(const struct nb_results *results, const struct selection *s, int which) {
    struct nb_interval i = {NAN, NAN, NAN};
    double *values = nb_alloc(results->n + 1, sizeof *values);
    size_t n = 0;
    for (size_t r = 0; r < results->n; r++) {
        if (!is_selected(&results->records[r], s)) continue;
        double value = figure_of(&results->records[r].accuracy, which);
        if (!isfinite(value)) continue;
        values[n++] = value;
        i.low = n == 1 || value < i.low ? value : i.low;
        i.high = n == 1 || value > i.high ? value : i.high;
    }
    if (n) i.value = nb_median(values, n);
    free(values);
    return i;
}

/* Dtypes of a kernel stand below each other round the kernel's place. */
static void add_points(struct nb_figure *f, const struct nb_results *results, uint32_t op, uint32_t pass) {
    size_t n_dtypes = f->n_entries;
    for (size_t k = 0; k < f->n_names; k++)
        for (uint32_t dtype = 0; dtype < NB_N_DTYPES; dtype++) {
            struct selection s = {op, pass, dtype, f->names[k]};
            for (size_t panel = 0; panel < N_FIGURES; panel++) {
                struct nb_interval i = summarize(results, &s, (int)panel);
                if (!isfinite(i.value)) continue;
                size_t entry = nb_figure_entry(f, nb_formats[dtype].name);
                double shift = 0.24 * ((double)entry - ((double)n_dtypes - 1) / 2);
                nb_figure_add(f, panel, entry, (struct nb_point){i.value, (double)k + shift, i.low, i.high});
            }
        }
}

static void draw(const struct nb_results *results, struct nb_figures *figures, uint32_t op, uint32_t pass) {
    struct nb_strbuf name = {0}, title = {0}, kernel = {0};
    nb_strbuf_addf(&name, "error-%s-%s", nb_op_names[op], nb_pass_names[pass]);
    struct nb_figure *f = nb_figures_new(figures, results, name.text);
    for (uint32_t dtype = 0; dtype < NB_N_DTYPES; dtype++)
        for (size_t i = 0; i < results->n; i++) {
            struct selection s = {op, pass, dtype, NULL};
            if (!is_selected(&results->records[i], &s)) continue;
            nb_strbuf_clear(&kernel);
            nb_kernel_name(&results->records[i].c, &kernel);
            nb_figure_entry(f, nb_formats[dtype].name);
            nb_figure_name(f, kernel.text);
        }
    f->n_panels = N_FIGURES;
    f->panels[0] = (struct nb_panel){"largest error", "ulp", NULL, NB_SCALE_DECADES, NB_SCALE_NAMES};
    f->panels[1] = (struct nb_panel){"mean error", "ulp", NULL, NB_SCALE_DECADES, NB_SCALE_NAMES};
    f->panels[2] = (struct nb_panel){"bias", "u", NULL, NB_SCALE_SIGNED, NB_SCALE_NAMES};
    add_points(f, results, op, pass);
    nb_strbuf_addf(&title, "%s%s: error by kernel and dtype", nb_op_names[op], pass == NB_BACKWARD ? " backward" : "");
    f->title = nb_strdup(title.text);
    f->subtitle = nb_strdup("point: median over the cases; bar: least to largest");
    f->caption = nb_strdup(caption);
    const bool compares = f->n_names * f->n_entries > 1; /* one kernel of one dtype is a row of the table */
    if (!f->n_lines || !compares) nb_figures_drop_last(figures);
    nb_strbuf_release(&name);
    nb_strbuf_release(&title);
    nb_strbuf_release(&kernel);
}

void nb_plot_error(const struct nb_results *results, struct nb_figures *figures) {
    size_t before = figures->n;
    for (uint32_t pass = 0; pass < NB_N_PASSES; pass++)
        for (uint32_t op = 0; op < NB_OP_COPY; op++) draw(results, figures, op, pass);
    if (figures->n == before)
        nb_figures_note(figures, "error by kernel and dtype: no op has an accuracy of two kernels or dtypes");
}
