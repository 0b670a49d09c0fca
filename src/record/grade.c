// SPDX-License-Identifier: Apache-2.0
/* The grade of one case, from the strictest definition downwards. */
#include "src/record/grade.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/core/axes.h"
#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/plan/inputs.h"

static const char *const grade_names[NB_N_GRADES] = {"-", "F", "D", "C", "B", "A", "A+"};

const char *nb_grade_name(enum nb_grade grade) { return grade_names[grade]; }

enum nb_grade nb_grade_parse(const char *text) {
    for (int g = NB_GRADE_F; g < NB_N_GRADES; g++)
        if (strcasecmp(text, grade_names[g]) == 0) return (enum nb_grade)g;
    return NB_GRADE_NONE;
}

/* Error / change of the exact result under half an ulp of input noise; NaN where not measured. */
static double noise_ratio_of(const struct nb_record *r) {
    return r->has_accuracy && r->accuracy.has_ratios ? r->accuracy.noise_ratio : (double)NAN;
}

/* ---- the figures of a case ---------------------------------------------------------------------------------------- */

/* How far the bias of independent random rows is beyond what is allowed: NB_BIAS_U and three standard errors of a mean over rows,
 * since what a row shares has a sign of its own in each. 0 where nothing can be said: extremes and real rows repeat values. */
static double bias_excess_u(const struct nb_record *r) {
    const struct nb_accuracy *a = &r->accuracy;
    if (!nb_inputs_is_random(&r->c) || a->n_rows < 8 || !isfinite(a->bias_large_u) || !isfinite(a->bias_large_sd_u))
        return 0;
    return fabs(a->bias_large_u) - NB_BIAS_U - 3 * a->bias_large_sd_u / sqrt((double)a->n_rows);
}

/* y is right as far as it goes, and something beside it (residual_out, mean, rstd, running statistics) is not. */
static bool is_wrong_beside_y(const struct nb_record *r) {
    return r->status == NB_INACCURATE && r->accuracy.n_beyond == 0 && r->accuracy.worst_ratio <= 1;
}

static enum nb_grade set(struct nb_graded *out, enum nb_grade grade, double severity) {
    out->grade = grade;
    out->severity = severity;
    return grade;
}

static void add_place(struct nb_graded *out, const struct nb_evidence *e) {
    const size_t len = strlen(out->text);
    if (e->worst_row < 0) return;
    snprintf(out->text + len, sizeof out->text - len, ", at [%lld][%lld]", (long long)e->worst_row,
             (long long)e->worst_col);
}

static void grade_lost(const struct nb_evidence *e, struct nb_graded *out) {
    const int64_t n = e->n_nan + e->n_inf + e->n_zero;
    const char *what = e->n_nan == n ? "NaN" : e->n_inf == n ? "Inf" : e->n_zero == n ? "0" : "NaN, Inf or 0";
    set(out, NB_GRADE_F, 1e300 * (double)n / (double)e->n);
    snprintf(out->text, sizeof out->text, "%s in %lld of %lld elements where the exact result is a number", what,
             (long long)n, (long long)e->n);
    add_place(out, e);
}

static bool grade_rounded(const struct nb_record *r, struct nb_graded *out) {
    const struct nb_evidence *e = &r->evidence;
    if (e->n_correct == e->n) {
        set(out, NB_GRADE_A_PLUS, 0);
        snprintf(out->text, sizeof out->text, "all %lld elements correctly rounded", (long long)e->n);
        return true;
    }
    if (!(e->componentwise_ulp <= NB_COMPONENTWISE_ULP) || bias_excess_u(r) > 0) return false;
    set(out, NB_GRADE_A, e->componentwise_ulp);
    snprintf(out->text, sizeof out->text, "largest error %.3f ulp", e->componentwise_ulp);
    add_place(out, e);
    return true;
}

/* ||error|| <= sqrt(u) ||y|| in every row. */
static bool keeps_half_the_digits(const struct nb_record *r) {
    return r->evidence.normwise_u * sqrt(nb_formats[r->c.dtype].unit_roundoff) <= 1;
}

/* A bound may allow more than a user calls good. dx may cancel as a whole, whatever the kernel, so that its own norm is no measure. */
static bool grade_bounded(const struct nb_record *r, struct nb_graded *out) {
    const struct nb_evidence *e = &r->evidence;
    if (e->n_beyond > 0 || e->n_unbounded > 0) return false;
    if (r->c.pass == NB_FORWARD && !keeps_half_the_digits(r)) return false;
    set(out, NB_GRADE_B, e->componentwise_ulp);
    if (e->componentwise_ulp <= NB_COMPONENTWISE_ULP)
        snprintf(out->text, sizeof out->text, "bias %+.3f u; largest error %.3f ulp, %.2f of its bound",
                 r->accuracy.bias_large_u, e->componentwise_ulp, e->bound_ratio);
    else
        snprintf(out->text, sizeof out->text, "largest error %.4g ulp, %.2f of the bound", e->componentwise_ulp,
                 e->bound_ratio);
    add_place(out, e);
    return true;
}

static void grade_loosely(const struct nb_record *r, struct nb_graded *out) {
    const struct nb_evidence *e = &r->evidence;
    const char *why = e->n_beyond > 0 ? "beyond the bound"
                      : e->n_unbounded > 0
                          ? nb_loss_names[r->accuracy.loss]
                          : "more than half of the digits are wrong, which the bound of its formula allows";
    const double noise = noise_ratio_of(r), share = e->normwise_u * nb_formats[r->c.dtype].unit_roundoff;
    const bool bounded = e->n_beyond == 0 && e->n_unbounded == 0;
    if (noise <= NB_NOISE_RATIO) {
        set(out, NB_GRADE_C, noise);
        snprintf(out->text, sizeof out->text, "%s, but %.2f of what half an ulp of input noise does", why, noise);
    } else {
        const bool in_norm = e->normwise_u <= NB_NORMWISE_U || (bounded && share <= NB_NORMWISE_SHARE);
        char of_noise[48] = ""; /* a timed case is not asked for it */
        if (isfinite(noise)) snprintf(of_noise, sizeof of_noise, ", %.3g times the input noise", noise);
        set(out, in_norm ? NB_GRADE_D : NB_GRADE_F, e->normwise_u);
        snprintf(out->text, sizeof out->text, "%s; %.3g ulp%s; %.3g u in norm", why, e->componentwise_ulp, of_noise,
                 e->normwise_u);
    }
    add_place(out, e);
}

void nb_grade_case(const struct nb_record *r, struct nb_graded *out) {
    const struct nb_evidence *e = &r->evidence;
    *out = (struct nb_graded){.grade = NB_GRADE_NONE};
    if (r->status == NB_SKIPPED || r->status == NB_NOT_RUN || r->c.op == NB_OP_COPY) return;
    const bool is_lost = r->status == NB_OUT_OF_RANGE && r->accuracy.loss != NB_LOSS_UNBOUNDED;
    out->declared = !is_lost && (!r->has_evidence || e->covered);
    const bool judged = nb_status_timed(r->status) || r->status == NB_INACCURATE || r->status == NB_BIASED;
    if (!judged || is_wrong_beside_y(r)) { /* a kernel must come back, and keep to its memory, whatever the row */
        set(out, NB_GRADE_F, judged ? 0 : INFINITY); /* an element that is off says more than a relation */
        snprintf(out->text, sizeof out->text, "%s: %s", nb_status_name(r->status), r->reason ? r->reason : "");
        return;
    }
    if (!r->has_evidence || e->n == 0) return;
    if (e->n_nan + e->n_inf + e->n_zero > 0)
        grade_lost(e, out);
    else if (!grade_rounded(r, out) && !grade_bounded(r, out))
        grade_loosely(r, out);
}

bool nb_grade_survives(const struct nb_record *r) {
    const struct nb_evidence *e = &r->evidence;
    if (nb_status_failed(r->status)) return false;
    if (!r->has_evidence || e->n == 0) return true;
    if (e->n_nan + e->n_inf + e->n_zero > 0) return false;
    if (noise_ratio_of(r) <= NB_SURVIVAL_NOISE_RATIO) return true;
    return keeps_half_the_digits(r);
}

/* ---- the formula -------------------------------------------------------------------------------------------------- */

/* The axes of a case's formula that are not as usual, as its key prints them; "default". */
static void formula_of(const struct nb_case *c, struct nb_strbuf *out) {
    static const char *const axes[] = {"eps_place",     "root",        "affine",    "cast",
                                       "weight_offset", "param_dtype", "round_sum", "mode"};
    struct nb_case usual = *c;
    const size_t start = out->len, n = sizeof axes / sizeof axes[0];
    char reason[200];
    for (size_t i = 0; i < n; i++) {
        const struct nb_axis *axis = nb_axis_find(axes[i]);
        nb_axis_set(axis, &usual, axis->fallback, reason, sizeof reason);
    }
    nb_case_normalize(&usual);
    for (size_t i = 0; i < n; i++) {
        char *mine freed = nb_case_axis_text(c, axes[i]), *theirs freed = nb_case_axis_text(&usual, axes[i]);
        if (!*mine || strcmp(mine, theirs) == 0) continue;
        nb_strbuf_addf(out, "%s%s:%s", out->len > start ? "/" : "", axes[i], mine);
    }
    if (out->len == start) nb_strbuf_add(out, "default");
}

/* ---- in words ---------------------------------------------------------------------------------------------------- */

/* Records gathered by variant and formula: the lowest grade of any case is the line's. */

/* A line while it grows. */
struct gathering {
    double n[2], n_correct[2]; /* elements; [1]: in the declared range */
    struct nb_grade_figures figures[2];
};

static void keep_largest(double *largest, double v) {
    if (isnan(v)) return;
    if (isnan(*largest) || fabs(v) > fabs(*largest)) *largest = v;
}

bool nb_graded_is_worse(const struct nb_graded *a, const struct nb_graded *b) {
    if (a->grade == NB_GRADE_NONE || b->grade == NB_GRADE_NONE) return b->grade == NB_GRADE_NONE;
    return a->grade != b->grade ? a->grade < b->grade : a->severity > b->severity;
}

static void take_figures(struct gathering *g, int scope, const struct nb_record *r) {
    struct nb_grade_figures *f = &g->figures[scope];
    if (!r->has_evidence || !r->has_accuracy) return;
    g->n[scope] += (double)r->evidence.n;
    g->n_correct[scope] += (double)r->evidence.n_correct;
    keep_largest(&f->max_ulp, r->evidence.max_ulp);
    keep_largest(&f->componentwise_ulp, r->evidence.componentwise_ulp);
    keep_largest(&f->bound_ratio, r->evidence.bound_ratio);
    keep_largest(&f->gain_u, r->accuracy.gain_u);
    keep_largest(&f->noise_ratio, noise_ratio_of(r));
    if (isfinite(r->accuracy.bias_large_sd_u) && r->accuracy.n_rows >= 8)
        keep_largest(&f->bias_u, r->accuracy.bias_large_u);
}

static void take(struct nb_grade_line *line, struct gathering *g, const struct nb_record *r) {
    struct nb_graded graded;
    nb_grade_case(r, &graded);
    if (!line->lost && !nb_grade_survives(r)) line->lost = r;
    if (graded.grade == NB_GRADE_NONE) return;
    line->n_cases++;
    line->n_nan += r->evidence.n_nan;
    line->n_inf += r->evidence.n_inf;
    line->n_zero += r->evidence.n_zero;
    take_figures(g, 0, r);
    if (nb_graded_is_worse(&graded, &line->all)) {
        line->all = graded;
        line->why_all = r;
    }
    if (!graded.declared) return;
    line->n_declared++;
    take_figures(g, 1, r);
    if (!nb_graded_is_worse(&graded, &line->declared)) return;
    line->declared = graded;
    line->why_declared = r;
}

static void finish(struct nb_grade_line *line, const struct gathering *g) {
    const int scope = line->n_declared > 0;
    line->figures = g->figures[scope];
    line->correct = g->n[scope] > 0 ? g->n_correct[scope] / g->n[scope] : NAN;
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

/* Takes the name over, in which the formula begins there. */
static size_t add_line(struct nb_grades *grades, struct gathering **gatherings, const struct nb_record *r, char *name,
                       size_t formula) {
    static const struct nb_grade_figures none = {NAN, NAN, NAN, NAN, NAN, NAN};
    grades->lines = nb_realloc(grades->lines, grades->n + 1, sizeof *grades->lines);
    *gatherings = nb_realloc(*gatherings, grades->n + 1, sizeof **gatherings);
    grades->lines[grades->n] =
        (struct nb_grade_line){.first = r, .kernel = nb_kernel_text(&r->c), .name = name, .formula = name + formula};
    (*gatherings)[grades->n] = (struct gathering){.figures = {none, none}};
    return grades->n++;
}

static bool concerns(const struct nb_record *r, const char *label) {
    if (r->c.op == NB_OP_COPY || r->status == NB_SKIPPED || r->status == NB_NOT_RUN) return false;
    return !label || nb_record_has_label(r, label);
}

void nb_grades_make(struct nb_grades *grades, const struct nb_results *results, const char *label) {
    struct nb_text_map known released_by(nb_text_map_release) = {0};
    struct gathering *gatherings freed = NULL;
    *grades = (struct nb_grades){0};
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        struct nb_strbuf name = {0};
        if (!concerns(r, label)) continue;
        nb_strbuf_addf(&name, "%s ", r->c.variant);
        const size_t formula = name.len;
        formula_of(&r->c, &name);
        size_t at = nb_text_map_find(&known, name.text);
        if (at == NB_NOWHERE) {
            at = add_line(grades, &gatherings, r, name.text, formula);
            nb_text_map_add(&known, name.text, at);
        } else {
            nb_strbuf_release(&name);
        }
        take(&grades->lines[at], &gatherings[at], r);
    }
    for (size_t i = 0; i < grades->n; i++) finish(&grades->lines[i], &gatherings[i]);
    if (grades->n > 0) qsort(grades->lines, grades->n, sizeof *grades->lines, by_name);
}

void nb_grades_release(struct nb_grades *grades) {
    for (size_t i = 0; i < grades->n; i++) {
        free(grades->lines[i].kernel);
        free(grades->lines[i].name);
    }
    free(grades->lines);
    *grades = (struct nb_grades){0};
}
