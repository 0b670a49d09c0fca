// SPDX-License-Identifier: Apache-2.0
/* Comparable cases out of a matrix. */
#include "reports/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/log.h"

enum rule { SAME_ROWS, SAME_ELEMENTS, ANY_ROWS, N_RULES };

struct member {
    char *facet; /* what a curve holds still */
    int64_t cols, rows;
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
    else
        nb_strbuf_add(out, "rows differ");
}

/* Facets in order; in one, row lengths, then the most rows first. */
static int by_facet(const void *left, const void *right) {
    const struct member *a = left, *b = right;
    int order = strcmp(a->facet, b->facet);
    if (order) return order;
    if (a->cols != b->cols) return a->cols < b->cols ? -1 : 1;
    if (a->rows != b->rows) return a->rows < b->rows ? 1 : -1;
    return (a->record > b->record) - (a->record < b->record);
}

static size_t collect(struct member *members, const struct nb_results *results, nb_record_filter *accepts,
                      const void *arg, const char *const *free_axes, enum rule rule) {
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        struct nb_strbuf facet = {0};
        if (!nb_record_timed(r) || !accepts(r, arg)) continue;
        add_rule(r, rule, &facet);
        nb_sweep_constants(r, free_axes, &facet);
        members[n++] = (struct member){facet.text, r->c.shape.cols, r->c.shape.rows, i};
    }
    if (n) qsort(members, n, sizeof *members, by_facet);
    return n;
}

static void take(struct nb_sweep *sweep, const struct member *members, size_t n, size_t n_lengths) {
    nb_sweep_release(sweep);
    sweep->n = n;
    sweep->n_lengths = n_lengths;
    sweep->constants = nb_strdup(members[0].facet);
    sweep->records = nb_alloc(n, sizeof *sweep->records);
    for (size_t i = 0; i < n; i++) sweep->records[i] = members[i].record;
}

/* The facet with the most row lengths, then the most records. */
static void choose(struct nb_sweep *sweep, const struct member *members, size_t n) {
    for (size_t start = 0, end; start < n; start = end) {
        size_t lengths = 1;
        for (end = start + 1; end < n && strcmp(members[end].facet, members[start].facet) == 0; end++)
            lengths += members[end].cols != members[end - 1].cols;
        bool denser = lengths == sweep->n_lengths && end - start > sweep->n;
        if (lengths > sweep->n_lengths || denser) take(sweep, members + start, end - start, lengths);
    }
}

void nb_sweep_find(struct nb_sweep *sweep, const struct nb_results *results, nb_record_filter *accepts, const void *arg,
                   const char *const *free_axes) {
    *sweep = (struct nb_sweep){0};
    struct member *members = nb_alloc(results->n + 1, sizeof *members);
    for (int rule = 0; rule < N_RULES; rule++) {
        if (rule == ANY_ROWS && sweep->n_lengths >= 3) break;
        struct nb_sweep best = {0};
        size_t n = collect(members, results, accepts, arg, free_axes, (enum rule)rule);
        choose(&best, members, n);
        for (size_t i = 0; i < n; i++) free(members[i].facet);
        if (best.n_lengths > sweep->n_lengths) {
            struct nb_strbuf subtitle = {0};
            add_rule(&results->records[best.records[0]], (enum rule)rule, &subtitle);
            nb_sweep_subtitle(&results->records[best.records[0]], free_axes, &subtitle);
            best.subtitle = subtitle.text;
            nb_sweep_release(sweep);
            *sweep = best;
        } else {
            nb_sweep_release(&best);
        }
    }
    free(members);
}

void nb_sweep_release(struct nb_sweep *sweep) {
    free(sweep->records);
    free(sweep->constants);
    free(sweep->subtitle);
    *sweep = (struct nb_sweep){0};
}
