// SPDX-License-Identifier: Apache-2.0
/* What the failing cases of a kernel have in common and few others have: its shape or formula often names the mistake. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "src/accuracy/oracle.h"
#include "src/core/case.h"
#include "src/core/log.h"

/* By chance all n failures lie in such a part of the cases once in so many times, at most. */
static const double by_chance = 0.01;

struct judged {
    const struct nb_record **items; /* those that fail first */
    size_t n, n_failed;
};

typedef bool (*has_fn)(const struct nb_record *r, int64_t than);
static bool is_ragged(const struct nb_record *r, int64_t m) { return r->c.shape.cols % m != 0; }
static bool is_long(const struct nb_record *r, int64_t n) { return r->c.shape.cols >= n; }
static bool is_short(const struct nb_record *r, int64_t n) { return r->c.shape.cols <= n; }
static bool has_many(const struct nb_record *r, int64_t n) { return r->c.shape.rows >= n; }
static bool has_few(const struct nb_record *r, int64_t n) { return r->c.shape.rows <= n; }

/* The pattern that fewest other cases have. */
struct best {
    size_t n_in;
    char text[120];
};

static bool is_telling(const struct judged *j, size_t n_in) {
    const double share = (double)n_in / (double)j->n;
    return n_in < j->n && 4 * j->n_failed >= n_in && pow(share, (double)j->n_failed) <= by_chance;
}

static void try_shape(const struct judged *j, has_fn has, int64_t than, const char *format, struct best *best) {
    size_t n_in = 0, n_failed = 0;
    for (size_t i = 0; i < j->n; i++) {
        const bool in = has(j->items[i], than);
        n_in += in;
        n_failed += in && i < j->n_failed;
    }
    if (n_failed < j->n_failed || !is_telling(j, n_in) || n_in >= best->n_in) return;
    best->n_in = n_in;
    snprintf(best->text, sizeof best->text, format, (long long)than);
}

static void try_axis(const struct judged *j, const char *axis, struct best *best) {
    char *value freed = nb_case_axis_text(&j->items[0]->c, axis);
    size_t n_in = 0;
    bool all = true;
    for (size_t i = 0; i < j->n && all; i++) {
        char *other freed = nb_case_axis_text(&j->items[i]->c, axis);
        const bool same = strcmp(value, other) == 0;
        n_in += same;
        all = same || i >= j->n_failed;
    }
    if (all && *value && is_telling(j, n_in) && n_in < best->n_in) {
        best->n_in = n_in;
        snprintf(best->text, sizeof best->text, "with %s %s", axis, value);
    }
}

static void try_shapes(const struct judged *j, struct best *best) {
    struct nb_shape least = j->items[0]->c.shape, most = least;
    for (size_t i = 0; i < j->n_failed; i++) {
        const struct nb_shape *s = &j->items[i]->c.shape;
        if (s->cols < least.cols) least.cols = s->cols;
        if (s->cols > most.cols) most.cols = s->cols;
        if (s->rows < least.rows) least.rows = s->rows;
        if (s->rows > most.rows) most.rows = s->rows;
    }
    for (int64_t m = 64; m >= 4; m /= 2) try_shape(j, is_ragged, m, "with columns that are no multiple of %lld", best);
    try_shape(j, is_long, least.cols, "with %lld columns and more", best);
    try_shape(j, is_short, most.cols, "with up to %lld columns", best);
    try_shape(j, has_many, least.rows, "with %lld rows and more", best);
    try_shape(j, has_few, most.rows, "with up to %lld rows", best);
}

static bool is_taken(const struct judged *j, const struct nb_record *r) {
    for (size_t i = 0; i < j->n; i++)
        if (strcmp(j->items[i]->key, r->key) == 0) return true;
    return false;
}

/* A run repeats the first failures of its checks. */
static void gather(struct judged *j, const struct nb_results *results, const char *variant, bool failing) {
    for (size_t i = 0; results && i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        if (strcmp(r->c.variant, variant) != 0 || nb_status_failed(r->status) != failing) continue;
        if ((failing || nb_status_timed(r->status)) && !is_taken(j, r)) j->items[j->n++] = r;
    }
}

static struct judged failures_of(const struct nb_results *results, const struct nb_results *more, const char *variant) {
    struct judged j = {.items = nb_alloc(results->n + (more ? more->n : 0) + 1, sizeof *j.items)};
    gather(&j, results, variant, true);
    gather(&j, more, variant, true);
    j.n_failed = j.n;
    return j;
}

void nb_failure_pattern(const struct nb_results *results, const struct nb_results *more, const char *variant,
                        struct nb_strbuf *out) {
    static const char *const axes[] = {"affine", "weight_offset", "cast", "param_dtype", "eps_place",
                                       "eps",    "mode",          "data", "dy",          "stride"};
    struct judged j = failures_of(results, more, variant);
    struct best best = {.n_in = SIZE_MAX};
    gather(&j, results, variant, false);
    gather(&j, more, variant, false);
    if (j.n_failed > 0) {
        try_shapes(&j, &best);
        for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) try_axis(&j, axes[i], &best);
    }
    if (best.n_in < SIZE_MAX)
        nb_strbuf_addf(out, "only %s: %zu of %zu such case%s, none of %zu others", best.text, j.n_failed, best.n_in,
                       best.n_in == 1 ? "" : "s", j.n - best.n_in);
    free(j.items);
}

/* ---- right but for a factor ---------------------------------------------------------------------------------------- */

/* Over the rows of cases that are. missing: the n - d that gives a row its factor, where its sum is divided by d, not by n. */
struct factors {
    double low, high, least_missing, most_missing;
    double at_shortest, at_longest; /* factors; of rows of so many elements: */
    int64_t shortest, longest;
};

/* Is what is left behind the factor of each row no more than its roundings? */
static bool is_by_factor(const struct nb_record *r) {
    const struct nb_evidence *e = &r->evidence;
    const double off = fmax(fabs(e->factor_low - 1), fabs(e->factor_high - 1));
    return r->has_evidence && e->factor_rest <= 2 * nb_formats[r->c.dtype].unit_roundoff && off >= 4 * e->factor_rest;
}

static void take_factors(struct factors *f, const struct nb_record *r) {
    const double ends[2] = {r->evidence.factor_low, r->evidence.factor_high};
    const int64_t n = nb_truth_elements(&r->c);
    for (int i = 0; i < 2; i++) {
        const double missing = (double)n * (1 - ends[i] * ends[i]);
        f->low = fmin(f->low, ends[i]);
        f->high = fmax(f->high, ends[i]);
        f->least_missing = fmin(f->least_missing, missing);
        f->most_missing = fmax(f->most_missing, missing);
    }
    if (f->shortest == 0 || n < f->shortest) {
        f->shortest = n;
        f->at_shortest = ends[1];
    }
    if (n > f->longest) {
        f->longest = n;
        f->at_longest = ends[1];
    }
}

static void say_factors(const struct factors *f, struct nb_strbuf *out) {
    const bool large = f->low > 1, small = f->high < 1;
    const double least = small ? 1 / f->high : f->low, most = small ? 1 / f->low : f->high,
                 missing = rint((f->least_missing + f->most_missing) / 2);
    if (f->high == 0) {
        nb_strbuf_add(out, "comes out as 0, as where a sum of squares overflows");
        return;
    }
    nb_strbuf_addf(out, "is %s of %.5g",
                   large   ? "too large by a factor"
                   : small ? "too small by a factor"
                           : "off by a factor",
                   least);
    if (most - least > 0.02 * fabs(least - 1)) nb_strbuf_addf(out, " to %.5g", most);
    if (f->longest == f->shortest) return;
    if (missing != 0 && f->most_missing - missing < 0.3 && missing - f->least_missing < 0.3)
        nb_strbuf_addf(out, ", as if the sum were divided by n %c %.0f", missing > 0 ? '-' : '+', fabs(missing));
    else if (large && f->at_longest - 1 > 1.02 * (f->at_shortest - 1))
        nb_strbuf_add(out, ", more in longer rows, as where a sum loses terms");
}

void nb_failure_factor(const struct nb_results *results, const struct nb_results *more, const char *variant,
                       struct nb_strbuf *out) {
    struct judged j = failures_of(results, more, variant);
    struct factors f = {.low = INFINITY, .least_missing = INFINITY, .most_missing = -INFINITY};
    size_t n_by = 0;
    for (size_t i = 0; i < j.n_failed; i++) {
        if (!is_by_factor(j.items[i])) continue;
        take_factors(&f, j.items[i]);
        n_by++;
    }
    if (n_by > 0 && 2 * n_by >= j.n_failed) {
        nb_strbuf_add(out, "every row ");
        say_factors(&f, out);
        if (n_by < j.n_failed) nb_strbuf_addf(out, " (in %zu of %zu such cases)", n_by, j.n_failed);
    }
    free(j.items);
}
