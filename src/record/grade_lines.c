// SPDX-License-Identifier: Apache-2.0
/* Records gathered by variant and formula: the lowest grade of any case is the line's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/stats.h"
#include "src/core/text.h"
#include "src/record/grade.h"

/* A line while it grows. */
struct gathering {
    double n[2], n_correct[2]; /* elements; [1]: in the declared range */
    double *ns;                /* per element, of the timed cases */
    size_t n_ns;
    struct figures {
        double max_ulp, componentwise_ulp, bias_u, gain_u, bound_ratio, noise_ratio, reference_ratio;
    } figures[2];
};

static void keep_largest(double *largest, double v) {
    if (isnan(v)) return;
    if (isnan(*largest) || fabs(v) > fabs(*largest)) *largest = v;
}

/* The lower grade; of the same grade the more severe one. */
static bool is_worse(const struct nb_graded *a, const struct nb_graded *b) {
    if (b->grade == NB_GRADE_NONE) return true;
    return a->grade != b->grade ? a->grade < b->grade : a->severity > b->severity;
}

static void take_figures(struct gathering *g, int scope, const struct nb_record *r) {
    struct figures *f = &g->figures[scope];
    if (!r->has_evidence || !r->has_accuracy) return;
    g->n[scope] += (double)r->evidence.n;
    g->n_correct[scope] += (double)r->evidence.n_correct;
    keep_largest(&f->max_ulp, r->evidence.max_ulp);
    keep_largest(&f->componentwise_ulp, r->evidence.componentwise_ulp);
    keep_largest(&f->bound_ratio, r->evidence.bound_ratio);
    keep_largest(&f->gain_u, r->accuracy.gain_u);
    keep_largest(&f->noise_ratio, nb_grade_noise_ratio(r));
    keep_largest(&f->reference_ratio, nb_grade_reference_ratio(r));
    if (isfinite(r->accuracy.bias_large_sd_u) && r->accuracy.n_rows >= 8)
        keep_largest(&f->bias_u, r->accuracy.bias_large_u);
}

static void take(struct nb_grade_line *line, struct gathering *g, const struct nb_record *r) {
    struct nb_graded graded;
    nb_grade_case(r, &graded);
    if (r->has_timing) {
        g->ns = nb_realloc(g->ns, g->n_ns + 1, sizeof *g->ns);
        g->ns[g->n_ns++] = r->timing.time_ns.value / ((double)r->c.shape.rows * (double)r->c.shape.cols);
    }
    if (!line->lost && !nb_grade_survives(r)) line->lost = r;
    if (graded.grade == NB_GRADE_NONE) return;
    line->n_cases++;
    line->n_nan += r->evidence.n_nan;
    line->n_inf += r->evidence.n_inf;
    line->n_zero += r->evidence.n_zero;
    take_figures(g, 0, r);
    if (is_worse(&graded, &line->all)) {
        line->all = graded;
        line->why_all = r;
    }
    if (!graded.declared) return;
    line->n_declared++;
    take_figures(g, 1, r);
    if (!is_worse(&graded, &line->declared)) return;
    line->declared = graded;
    line->why_declared = r;
}

static void finish(struct nb_grade_line *line, struct gathering *g) {
    const int scope = line->n_declared > 0;
    const struct figures *f = &g->figures[scope];
    line->max_ulp = f->max_ulp;
    line->componentwise_ulp = f->componentwise_ulp;
    line->bias_u = f->bias_u;
    line->gain_u = f->gain_u;
    line->bound_ratio = f->bound_ratio;
    line->noise_ratio = f->noise_ratio;
    line->reference_ratio = f->reference_ratio;
    line->correct = g->n[scope] > 0 ? g->n_correct[scope] / g->n[scope] : NAN;
    line->ns_per_element = g->n_ns > 0 ? nb_median(g->ns, g->n_ns) : NAN;
    free(g->ns);
}

static int by_name(const void *a, const void *b) {
    const struct nb_grade_line *p = a, *q = b;
    const struct nb_case *c = &p->first->c, *d = &q->first->c;
    if (c->op != d->op) return c->op < d->op ? -1 : 1;
    if (c->pass != d->pass) return c->pass < d->pass ? -1 : 1;
    int order = strcmp(p->kernel, q->kernel);
    if (order == 0) order = (int)c->dtype - (int)d->dtype;
    if (order == 0) order = strcmp(p->formula, q->formula);
    if (order == 0) order = (int)c->width - (int)d->width;
    return order != 0 ? order : strcmp(c->variant, d->variant);
}

static size_t add_line(struct nb_grades *grades, struct gathering **gatherings, const struct nb_record *r,
                       const char *formula) {
    static const struct figures none = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    struct nb_strbuf kernel = {0};
    nb_kernel_name(&r->c, &kernel);
    grades->lines = nb_realloc(grades->lines, grades->n + 1, sizeof *grades->lines);
    *gatherings = nb_realloc(*gatherings, grades->n + 1, sizeof **gatherings);
    grades->lines[grades->n] = (struct nb_grade_line){.first = r, .kernel = kernel.text, .formula = nb_strdup(formula)};
    (*gatherings)[grades->n] = (struct gathering){.figures = {none, none}};
    return grades->n++;
}

static bool concerns(const struct nb_record *r, const char *label) {
    if (r->c.op == NB_OP_COPY || r->status == NB_SKIPPED || r->status == NB_NOT_RUN) return false;
    bool has = !label;
    for (int i = 0; i < r->n_labels && !has; i++) has = strcmp(r->labels[i], label) == 0;
    return has;
}

void nb_grades_make(struct nb_grades *grades, const struct nb_results *results, const char *label) {
    struct nb_text_map known = {0};
    struct gathering *gatherings = NULL;
    char **names = nb_alloc(results->n + 1, sizeof *names);
    *grades = (struct nb_grades){0};
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        struct nb_strbuf name = {0};
        if (!concerns(r, label)) continue;
        nb_strbuf_addf(&name, "%s ", r->c.variant);
        const size_t formula = name.len;
        nb_grade_formula(&r->c, &name);
        size_t at = nb_text_map_find(&known, name.text);
        if (at == NB_NOWHERE) {
            at = add_line(grades, &gatherings, r, name.text + formula);
            names[at] = name.text;
            nb_text_map_add(&known, name.text, at);
        } else {
            nb_strbuf_release(&name);
        }
        take(&grades->lines[at], &gatherings[at], r);
    }
    for (size_t i = 0; i < grades->n; i++) finish(&grades->lines[i], &gatherings[i]);
    nb_text_map_release(&known);
    for (size_t i = 0; i < grades->n; i++) free(names[i]);
    free(names);
    free(gatherings);
    if (grades->n > 0) qsort(grades->lines, grades->n, sizeof *grades->lines, by_name);
}

void nb_grades_release(struct nb_grades *grades) {
    for (size_t i = 0; i < grades->n; i++) {
        free(grades->lines[i].kernel);
        free(grades->lines[i].formula);
    }
    free(grades->lines);
    *grades = (struct nb_grades){0};
}
