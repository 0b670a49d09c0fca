// SPDX-License-Identifier: Apache-2.0
/* The grade of one case, from the strictest definition downwards. */
#include "src/record/grade.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "src/core/dtype.h"
#include "src/plan/inputs.h"

static const char *const names[NB_N_GRADES] = {"-", "F", "D", "C", "B", "A", "A+"};

const char *nb_grade_name(enum nb_grade grade) { return names[grade]; }

enum nb_grade nb_grade_parse(const char *text) {
    for (int g = NB_GRADE_F; g < NB_N_GRADES; g++)
        if (strcasecmp(text, names[g]) == 0) return (enum nb_grade)g;
    return NB_GRADE_NONE;
}

double nb_grade_noise_ratio(const struct nb_record *r) {
    return r->has_accuracy && r->accuracy.has_ratios ? r->accuracy.noise_ratio : (double)NAN;
}

double nb_grade_reference_ratio(const struct nb_record *r) {
    return r->has_accuracy && r->accuracy.has_ratios ? r->accuracy.reference_ratio : (double)NAN;
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

static bool grade_bounded(const struct nb_record *r, struct nb_graded *out) {
    const struct nb_evidence *e = &r->evidence;
    if (e->n_beyond > 0 || e->n_unbounded > 0) return false;
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
    const char *why = e->n_beyond > 0 ? "beyond the bound" : nb_loss_name(r->accuracy.loss);
    const double noise = nb_grade_noise_ratio(r);
    if (noise <= NB_NOISE_RATIO) {
        set(out, NB_GRADE_C, noise);
        snprintf(out->text, sizeof out->text, "%s, but %.2f of what half an ulp of input noise does", why, noise);
    } else if (e->normwise_u <= NB_NORMWISE_U) {
        set(out, NB_GRADE_D, e->normwise_u);
        snprintf(out->text, sizeof out->text, "%s; %.3g ulp, %.3g times the input noise; %.2f u in norm", why,
                 e->componentwise_ulp, noise, e->normwise_u);
    } else {
        set(out, NB_GRADE_F, e->normwise_u);
        snprintf(out->text, sizeof out->text, "%s; %.3g ulp, %.3g times the input noise; %.3g u in norm", why,
                 e->componentwise_ulp, noise, e->normwise_u);
    }
    add_place(out, e);
}

void nb_grade_case(const struct nb_record *r, struct nb_graded *out) {
    const struct nb_evidence *e = &r->evidence;
    *out = (struct nb_graded){.grade = NB_GRADE_NONE};
    if (r->status == NB_SKIPPED || r->status == NB_NOT_RUN || r->c.op == NB_OP_COPY) return;
    out->declared = r->status != NB_OUT_OF_RANGE && (!r->has_evidence || e->covered);
    const bool judged = nb_status_timed(r->status) || r->status == NB_INACCURATE || r->status == NB_BIASED;
    if (!judged || is_wrong_beside_y(r)) { /* a kernel must come back, and keep to its memory, whatever the row */
        set(out, NB_GRADE_F, INFINITY);
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
    if (nb_grade_noise_ratio(r) <= NB_SURVIVAL_NOISE_RATIO) return true;
    return e->normwise_u * sqrt(nb_formats[r->c.dtype].unit_roundoff) <= 1;
}

/* ---- the formula -------------------------------------------------------------------------------------------------- */

void nb_grade_formula(const struct nb_case *c, struct nb_strbuf *out) {
    static const char *const axes[] = {"eps_place",     "root",        "affine",    "cast",
                                       "weight_offset", "param_dtype", "round_sum", "mode"};
    struct nb_case usual = *c;
    struct nb_strbuf mine = {0}, theirs = {0};
    const size_t start = out->len, n = sizeof axes / sizeof axes[0];
    char reason[200];
    for (size_t i = 0; i < n; i++) {
        const struct nb_axis *axis = nb_axis_find(axes[i]);
        nb_axis_set(axis, &usual, axis->fallback, reason, sizeof reason);
    }
    nb_case_normalize(&usual);
    for (size_t i = 0; i < n; i++) {
        nb_strbuf_clear(&mine);
        nb_strbuf_clear(&theirs);
        nb_case_axis(c, axes[i], &mine);
        nb_case_axis(&usual, axes[i], &theirs);
        if (mine.len == 0 || strcmp(mine.text, theirs.text ? theirs.text : "") == 0) continue;
        nb_strbuf_addf(out, "%s%s:%s", out->len > start ? "/" : "", axes[i], mine.text);
    }
    if (out->len == start) nb_strbuf_add(out, "default");
    nb_strbuf_release(&mine);
    nb_strbuf_release(&theirs);
}
