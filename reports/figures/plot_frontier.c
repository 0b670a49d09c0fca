// SPDX-License-Identifier: Apache-2.0
/* Accuracy against speed: what a digit costs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/figures/plots.h"
#include "reports/figures/sweep.h"
#include "reports/run/columns.h"
#include "src/core/dtype.h"
#include "src/core/log.h"

static const char caption[] =
    "Each point is a case: a kernel at one width with one formula, timed and judged on the same rows; to the left is "
    "faster, "
    "down is more accurate. No other case is both faster and more accurate than one on the dashed line.";

/* All cases of one op and dtype that share everything but kernel, width and formula. */
struct group {
    size_t *records; /* owned */
    size_t n;
};

static const char *const free_axes[] = {"root", "cast", "eps_place", "param_dtype", "round_sum", NULL};

static double cost_ns(const struct nb_record *r) {
    return r->timing.time_ns.value / ((double)r->c.shape.rows * (double)r->c.shape.cols);
}

static bool is_drawable(const struct nb_record *r, uint32_t op, uint32_t pass, uint32_t dtype) {
    return nb_record_timed(r) && r->has_accuracy && r->c.op == op && r->c.pass == pass && r->c.dtype == dtype &&
           isfinite(r->accuracy.max_ulp);
}

struct member {
    char *facet;
    size_t record;
};

static int by_facet(const void *left, const void *right) {
    const struct member *a = left, *b = right;
    const int order = strcmp(a->facet, b->facet);
    return order ? order : (a->record > b->record) - (a->record < b->record);
}

static size_t collect(struct member *members, const struct nb_results *results, uint32_t op, uint32_t pass,
                      uint32_t dtype) {
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++) {
        struct nb_strbuf facet = {0};
        if (!is_drawable(&results->records[i], op, pass, dtype)) continue;
        nb_strbuf_addf(&facet, "%s, ", results->records[i].c.shape.text);
        nb_sweep_constants(&results->records[i], free_axes, &facet);
        members[n++] = (struct member){facet.text, i};
    }
    if (n) qsort(members, n, sizeof *members, by_facet);
    return n;
}

/* The facet that has the most cases. */
static struct group largest(const struct nb_results *results, uint32_t op, uint32_t pass, uint32_t dtype) {
    struct member *members = nb_alloc(results->n + 1, sizeof *members);
    const size_t n = collect(members, results, op, pass, dtype);
    size_t first = 0;
    struct group best = {0};
    for (size_t start = 0, end; start < n; start = end) {
        for (end = start + 1; end < n && strcmp(members[end].facet, members[start].facet) == 0;) end++;
        if (end - start <= best.n) continue;
        best.n = end - start;
        first = start;
    }
    best.records = nb_alloc(best.n + 1, sizeof *best.records);
    for (size_t i = 0; i < best.n; i++) best.records[i] = members[first + i].record;
    for (size_t i = 0; i < n; i++) free(members[i].facet);
    free(members);
    return best;
}

static bool is_beaten(const struct nb_results *results, const struct group *g, const struct nb_record *r) {
    for (size_t i = 0; i < g->n; i++) {
        const struct nb_record *other = &results->records[g->records[i]];
        const double time = cost_ns(other) - cost_ns(r), error = other->accuracy.max_ulp - r->accuracy.max_ulp;
        if (time <= 0 && error <= 0 && (time < 0 || error < 0)) return true;
    }
    return false;
}

static void add_points(struct nb_figure *f, const struct nb_results *results, const struct group *g) {
    for (size_t i = 0; i < g->n; i++) {
        const struct nb_record *r = &results->records[g->records[i]];
        struct nb_strbuf kernel = {0};
        nb_kernel_name(&r->c, &kernel);
        nb_figure_add(f, 0, nb_figure_entry(f, kernel.text),
                      (struct nb_point){cost_ns(r), r->accuracy.max_ulp, NAN, NAN});
        nb_strbuf_release(&kernel);
    }
    for (size_t i = 0; i < g->n; i++) {
        const struct nb_record *r = &results->records[g->records[i]];
        if (!is_beaten(results, g, r))
            nb_figure_add_law(f, 0, nb_figure_entry(f, "not beaten in both"), cost_ns(r), r->accuracy.max_ulp);
    }
}

static void draw(const struct nb_results *results, struct nb_figures *figures, uint32_t op, uint32_t pass,
                 uint32_t dtype) {
    struct group g = largest(results, op, pass, dtype);
    struct nb_strbuf text = {0};
    if (g.n >= 2) {
        nb_strbuf_addf(&text, "frontier-%s-%s-%s", nb_op_name(op), nb_pass_name(pass), nb_formats[dtype].name);
        struct nb_figure *f = nb_figures_new(figures, results, text.text);
        f->n_panels = 1;
        f->scattered = true;
        f->panels[0] =
            (struct nb_panel){NULL, "ns per element", "largest error, ulp", NB_SCALE_DECADES, NB_SCALE_DECADES};
        add_points(f, results, &g);
        nb_strbuf_clear(&text);
        nb_strbuf_addf(&text, "%s%s %s: accuracy against speed", nb_op_name(op), pass == NB_BACKWARD ? " backward" : "",
                       nb_formats[dtype].name);
        f->title = nb_strdup(text.text);
        nb_strbuf_clear(&text);
        nb_strbuf_addf(&text, "%s, ", results->records[g.records[0]].c.shape.text);
        nb_sweep_subtitle(&results->records[g.records[0]], free_axes, &text);
        f->subtitle = nb_strdup(text.text);
        f->caption = nb_strdup(caption);
        nb_figure_sort_laws(f);
    }
    free(g.records);
    nb_strbuf_release(&text);
}

void nb_plot_frontier(const struct nb_results *results, struct nb_figures *figures) {
    const size_t before = figures->n;
    for (uint32_t pass = 0; pass < NB_N_PASSES; pass++)
        for (uint32_t op = 0; op < NB_OP_COPY; op++)
            for (uint32_t dtype = 0; dtype < NB_N_DTYPES; dtype++) draw(results, figures, op, pass, dtype);
    if (figures->n == before)
        nb_figures_note(figures, "accuracy against speed: no two cases of one shape have a time and an accuracy");
}
