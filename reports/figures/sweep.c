// SPDX-License-Identifier: Apache-2.0
/* Comparable cases out of a matrix. */
#include "reports/figures/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"

enum rule { SAME_ROWS, SAME_ELEMENTS, SAME_LENGTH, ANY_SHAPE };

struct member {
    char *facet; /* what a curve holds still */
    double step; /* row length or bytes */
    int64_t rows;
    size_t record;
};

bool nb_record_timed(const struct nb_record *r) {
    const struct nb_case *c = &r->c;
    bool known = c->op < NB_N_OPS && c->pass < NB_N_PASSES && c->dtype < NB_N_DTYPES && c->width < NB_N_WIDTHS;
    double time_ns = r->timing.time_ns.value;
    return known && r->has_timing && nb_status_timed(r->status) && isfinite(time_ns) && time_ns > 0 &&
           c->shape.cols > 0;
}

static bool is_listed(const char *name, const char *const *names) {
    for (; names && *names; names++)
        if (strcmp(name, *names) == 0) return true;
    return false;
}

/* Axes that make a case, but for those of the kernel and the shape. */
static bool is_held(const struct nb_axis *axis, const char *const *free_axes) {
    static const char *const not_held[] = {"shape", NULL}, *const selected[] = {"pass", "dtype", NULL};
    if (axis->kind == NB_AXIS_SELECT && !is_listed(axis->name, selected)) return false;
    return !is_listed(axis->name, not_held) && !is_listed(axis->name, free_axes);
}

void nb_sweep_constants(const struct nb_record *r, const char *const *free_axes, struct nb_strbuf *out) {
    struct nb_strbuf value = {0};
    for (size_t a = 0; a < nb_n_axes; a++) {
        if (!is_held(&nb_axes[a], free_axes)) continue;
        nb_strbuf_clear(&value);
        nb_case_axis(&r->c, nb_axes[a].name, &value);
        if (value.len) nb_strbuf_addf(out, "%s%s %s", out->len ? ", " : "", nb_axes[a].name, value.text);
    }
    nb_strbuf_release(&value);
}

/* The title says dtype and pass; the op decides about the parameters. */
void nb_sweep_subtitle(const struct nb_record *r, const char *const *free_axes, struct nb_strbuf *out) {
    static const char *const always[] = {"data", "eps", "root", NULL}, *const never[] = {"pass", "dtype", "affine",
                                                                                         NULL};
    struct nb_strbuf value = {0};
    for (size_t a = 0; a < nb_n_axes; a++) {
        const struct nb_axis *axis = &nb_axes[a];
        if (!is_held(axis, free_axes) || is_listed(axis->name, never)) continue;
        nb_strbuf_clear(&value);
        nb_case_axis(&r->c, axis->name, &value);
        bool usual = axis->fallback && value.len && strcmp(value.text, axis->fallback) == 0;
        if (!value.len || (usual && !is_listed(axis->name, always))) continue;
        nb_strbuf_addf(out, "%s%s %s", out->len ? ", " : "", axis->name, value.text);
    }
    nb_strbuf_release(&value);
}

static void add_rule(const struct nb_record *r, enum rule rule, struct nb_strbuf *out) {
    static const char *const layouts[] = {"", "NCHW, ", "NHWC, "};
    const struct nb_shape *s = &r->c.shape;
    nb_strbuf_add(out, s->layout < NB_N_LAYOUTS ? layouts[s->layout] : "");
    if (rule == SAME_ROWS)
        nb_strbuf_addf(out, "%lld rows", (long long)s->rows);
    else if (rule == SAME_ELEMENTS)
        nb_strbuf_addf(out, "%.0f elements", (double)s->rows * (double)s->cols);
    else if (rule == SAME_LENGTH)
        nb_strbuf_addf(out, "row length %lld", (long long)s->cols);
    else
        nb_strbuf_add(out, "shapes differ");
}

/* Facets in order; in one, steps, then the most rows first. */
static int by_facet(const void *left, const void *right) {
    const struct member *a = left, *b = right;
    int order = strcmp(a->facet, b->facet);
    if (order) return order;
    if (a->step != b->step) return a->step < b->step ? -1 : 1;
    if (a->rows != b->rows) return a->rows < b->rows ? 1 : -1;
    return (a->record > b->record) - (a->record < b->record);
}

struct search {
    const struct nb_results *results;
    enum nb_sweep_by by;
    nb_record_filter *accepts;
    const void *arg;
    const char *const *free_axes;
};

static size_t collect(struct member *members, const struct search *search, enum rule rule) {
    size_t n = 0;
    for (size_t i = 0; i < search->results->n; i++) {
        const struct nb_record *r = &search->results->records[i];
        struct nb_strbuf facet = {0};
        double step = search->by == NB_BY_LENGTH ? (double)r->c.shape.cols : r->bytes;
        if (!nb_record_timed(r) || !(step > 0) || !search->accepts(r, search->arg)) continue;
        add_rule(r, rule, &facet);
        nb_sweep_constants(r, search->free_axes, &facet);
        members[n++] = (struct member){facet.text, step, r->c.shape.rows, i};
    }
    if (n) qsort(members, n, sizeof *members, by_facet);
    return n;
}

static void take(struct nb_sweep *sweep, const struct member *members, size_t n, size_t n_steps) {
    nb_sweep_release(sweep);
    sweep->n = n;
    sweep->n_steps = n_steps;
    sweep->constants = nb_strdup(members[0].facet);
    sweep->records = nb_alloc(n, sizeof *sweep->records);
    for (size_t i = 0; i < n; i++) sweep->records[i] = members[i].record;
}

/* The facet with the most steps, then the most records. */
static void choose(struct nb_sweep *sweep, const struct member *members, size_t n) {
    for (size_t start = 0, end; start < n; start = end) {
        size_t steps = 1;
        for (end = start + 1; end < n && strcmp(members[end].facet, members[start].facet) == 0; end++)
            steps += members[end].step != members[end - 1].step;
        bool denser = steps == sweep->n_steps && end - start > sweep->n;
        if (steps > sweep->n_steps || denser) take(sweep, members + start, end - start, steps);
    }
}

static void try_rule(struct nb_sweep *sweep, struct member *members, const struct search *search, enum rule rule) {
    struct nb_sweep best = {0};
    size_t n = collect(members, search, rule);
    choose(&best, members, n);
    for (size_t i = 0; i < n; i++) free(members[i].facet);
    if (best.n_steps <= sweep->n_steps) {
        nb_sweep_release(&best);
        return;
    }
    struct nb_strbuf subtitle = {0};
    add_rule(&search->results->records[best.records[0]], rule, &subtitle);
    nb_sweep_subtitle(&search->results->records[best.records[0]], search->free_axes, &subtitle);
    best.subtitle = subtitle.text;
    nb_sweep_release(sweep);
    *sweep = best;
}

void nb_sweep_find(struct nb_sweep *sweep, const struct nb_results *results, enum nb_sweep_by by,
                   nb_record_filter *accepts, const void *arg, const char *const *free_axes) {
    enum { ENOUGH = 3 };
    const struct search search = {results, by, accepts, arg, free_axes};
    struct member *members = nb_alloc(results->n + 1, sizeof *members);
    *sweep = (struct nb_sweep){0};
    if (by == NB_BY_LENGTH) {
        try_rule(sweep, members, &search, SAME_ROWS);
        try_rule(sweep, members, &search, SAME_ELEMENTS);
    } else {
        try_rule(sweep, members, &search, SAME_LENGTH);
    }
    if (sweep->n_steps < ENOUGH) try_rule(sweep, members, &search, ANY_SHAPE);
    free(members);
}

void nb_sweep_release(struct nb_sweep *sweep) {
    free(sweep->records);
    free(sweep->constants);
    free(sweep->subtitle);
    *sweep = (struct nb_sweep){0};
}
