// SPDX-License-Identifier: Apache-2.0
/* Comparable cases out of a matrix: on one curve, and as pairs of LayerNorm and RMSNorm. */
#include "reports/figures/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "src/core/axes.h"
#include "src/core/case.h"
#include "src/core/format.h"
#include "src/core/log.h"
#include "src/core/names.h"

enum rule { SAME_ROWS, SAME_ELEMENTS, SAME_LENGTH, SAME_SHAPE };

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

/* Axes that make a case, but for those of the kernel and the shape. */
static bool is_held(const struct nb_axis *axis, const char *const *free_axes) {
    static const char *const not_held[] = {"shape", NULL}, *const selected[] = {"pass", "dtype", NULL};
    if (axis->kind == NB_AXIS_SELECT && nb_name_find(selected, axis->name) < 0) return false;
    return nb_name_find(not_held, axis->name) < 0 && (!free_axes || nb_name_find(free_axes, axis->name) < 0);
}

/* usual: what a reader expects anyway, too. */
static void add_axes(const struct nb_record *r, const char *const *free_axes, bool usual, struct nb_strbuf *out) {
    static const char *const always[] = {"data", "eps", "root", NULL}, *const never[] = {"pass", "dtype", "affine",
                                                                                         NULL};
    for (size_t a = 0; a < nb_n_axes; a++) {
        const struct nb_axis *axis = &nb_axes[a];
        if (!is_held(axis, free_axes) || (!usual && nb_name_find(never, axis->name) >= 0)) continue;
        char *value freed = nb_case_axis_text(&r->c, axis->name);
        const bool is_usual = axis->fallback && strcmp(value, axis->fallback) == 0;
        if (!*value || (!usual && is_usual && nb_name_find(always, axis->name) < 0)) continue;
        nb_strbuf_addf(out, "%s%s %s", out->len ? ", " : "", axis->name, value);
    }
}

void nb_sweep_constants(const struct nb_record *r, const char *const *free_axes, struct nb_strbuf *out) {
    add_axes(r, free_axes, true, out);
}

struct search {
    const struct nb_results *results;
    enum nb_sweep_by by;
    nb_record_filter *accepts;
    const void *arg;
    const char *const *free_axes;
};

/* Times of unlike machines share no curve. */
static void add_rule(const struct search *search, const struct nb_record *r, enum rule rule, struct nb_strbuf *out) {
    static const char *const layouts[] = {"", "NCHW, ", "NHWC, "};
    const struct nb_shape *s = &r->c.shape;
    nb_meta_whose(search->results, r, "", ", ", out);
    if (rule == SAME_SHAPE) {
        nb_strbuf_add(out, s->text);
        return;
    }
    nb_strbuf_add(out, s->layout < NB_N_LAYOUTS ? layouts[s->layout] : "");
    if (rule == SAME_ROWS)
        nb_strbuf_addf(out, "%lld rows", (long long)s->rows);
    else if (rule == SAME_ELEMENTS)
        nb_strbuf_addf(out, "%.0f elements", (double)s->rows * (double)s->cols);
    else
        nb_strbuf_addf(out, "row length %lld", (long long)s->cols);
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

static size_t collect(struct member *members, const struct search *search, enum rule rule) {
    size_t n = 0;
    for (size_t i = 0; i < search->results->n; i++) {
        const struct nb_record *r = &search->results->records[i];
        struct nb_strbuf facet = {0};
        const double step = search->by == NB_BY_LENGTH  ? (double)r->c.shape.cols
                            : search->by == NB_BY_BYTES ? r->bytes
                                                        : 1;
        if (!nb_record_timed(r) || !(step > 0) || !search->accepts(r, search->arg)) continue;
        add_rule(search, r, rule, &facet);
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
    const struct nb_record *first = &search->results->records[best.records[0]];
    add_rule(search, first, rule, &subtitle);
    add_axes(first, search->free_axes, false,
             &subtitle); /* the title says dtype and pass; the op decides about the parameters */
    best.subtitle = subtitle.text;
    nb_sweep_release(sweep);
    *sweep = best;
}

void nb_sweep_find(struct nb_sweep *sweep, const struct nb_results *results, enum nb_sweep_by by,
                   nb_record_filter *accepts, const void *arg, const char *const *free_axes) {
    const struct search search = {results, by, accepts, arg, free_axes};
    struct member *members freed = nb_alloc(results->n + 1, sizeof *members);
    *sweep = (struct nb_sweep){0};
    if (by == NB_BY_LENGTH) {
        try_rule(sweep, members, &search, SAME_ROWS);
        try_rule(sweep, members, &search, SAME_ELEMENTS);
    } else {
        try_rule(sweep, members, &search, by == NB_BY_BYTES ? SAME_LENGTH : SAME_SHAPE);
    }
}

void nb_sweep_release(struct nb_sweep *sweep) {
    nb_free_all(sweep->records, sweep->constants, sweep->subtitle);
    *sweep = (struct nb_sweep){0};
}

/* ---- cuts ---- */

/* Parameters differ by op: LayerNorm usually has a beta. */
static const char *const own_axes[] = {"affine", "weight_offset", "param_dtype", NULL};

struct nb_interval nb_cut_of(const struct nb_interval *rms, const struct nb_interval *ln) {
    struct nb_interval cut = {1 - rms->value / ln->value, NAN, NAN};
    if (!nb_interval_known(rms) || !nb_interval_known(ln) || rms->low <= 0 || ln->low <= 0) return cut;
    cut.low = 1 - rms->high / ln->low;
    cut.high = 1 - rms->low / ln->high;
    return cut;
}

/* The reference's ratio to itself is 1, whatever the record says. */
static struct nb_interval ratio_of(const struct nb_record *r) {
    return nb_is_reference(r) ? (struct nb_interval){1, 1, 1} : r->timing.vs_reference;
}

static bool has_ratio(const struct nb_record *r, uint32_t op) {
    struct nb_interval ratio = ratio_of(r);
    return r->c.op == op && nb_record_timed(r) && r->timing.reference && isfinite(ratio.value) && ratio.value > 0;
}

char *nb_kernel_suffix(const struct nb_record *r) {
    char *kernel freed = nb_kernel_text(&r->c);
    const char *op = nb_op_names[r->c.op], *found = strstr(kernel, op);
    return nb_strdup(found ? found + strlen(op) : kernel);
}

/* What both sides must share, behind the kernel's name without the op's or "*": the same reference key means the same shape, data, threads and
 * cache state; parts of a split group share it too. */
static char *terms_of(const struct nb_record *r, bool by_name) {
    const struct nb_case *c = &r->c;
    char *suffix freed = nb_kernel_suffix(r);
    struct nb_strbuf terms = {0};
    nb_strbuf_addf(&terms, "%s|%d|%u|%u|%u|%u|%u|%s|%s", by_name ? suffix : "*", r->machine, c->dtype, c->width,
                   c->style, c->stats, c->stats_dtype, c->shape.text, r->timing.reference);
    nb_sweep_constants(r, own_axes, &terms);
    return terms.text;
}

/* An RMSNorm kernel goes by its name, and without it the first of those that share their terms. */
size_t nb_cuts_find(const struct nb_results *results, struct nb_cut **cuts) {
    struct nb_text_map rmsnorms released_by(nb_text_map_release) = {0};
    char **terms freed = nb_alloc(2 * results->n + 1, sizeof *terms);
    size_t n_terms = 0, n = 0;
    *cuts = nb_alloc(results->n + 1, sizeof **cuts);
    for (size_t i = 0; i < results->n; i++)
        for (int by_name = 0; by_name < 2 && has_ratio(&results->records[i], NB_OP_RMSNORM); by_name++) {
            terms[n_terms] = terms_of(&results->records[i], by_name == 1);
            nb_text_map_add(&rmsnorms, terms[n_terms++], i);
        }
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        if (!has_ratio(r, NB_OP_LAYERNORM)) continue;
        char *named freed = terms_of(r, true), *any freed = terms_of(r, false);
        size_t other = nb_text_map_find(&rmsnorms, named);
        if (other == NB_NOWHERE) other = nb_text_map_find(&rmsnorms, any);
        if (other == NB_NOWHERE) continue;
        const struct nb_interval ln = ratio_of(r), rms = ratio_of(&results->records[other]);
        (*cuts)[n++] = (struct nb_cut){i, other, nb_cut_of(&rms, &ln)};
    }
    for (size_t i = 0; i < n_terms; i++) free(terms[i]);
    return n;
}
