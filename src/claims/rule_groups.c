// SPDX-License-Identifier: Apache-2.0
/* Medians of groups and paired differences of them. */
#include "src/claims/rule_groups.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/log.h"

void nb_rule_group_add(struct nb_rule_group *g, const struct nb_finding *f) {
    if (isnan(f->value.value)) {
        g->missing = f->reason;
        return;
    }
    g->figures = nb_realloc(g->figures, g->n + 1, sizeof *g->figures);
    g->figures[g->n++] = f;
}

void nb_rule_group_release(struct nb_rule_group *g) {
    free(g->figures);
    *g = (struct nb_rule_group){0};
}

struct nb_interval nb_rule_group_value(const struct nb_rule_group *g) {
    if (g->n == 0) return (struct nb_interval){NAN, NAN, NAN};
    double *v = nb_alloc(3 * g->n, sizeof *v), *low = v + g->n, *high = low + g->n;
    for (size_t i = 0; i < g->n; i++) {
        v[i] = g->figures[i]->value.value;
        low[i] = g->figures[i]->value.low;
        high[i] = g->figures[i]->value.high;
    }
    const struct nb_interval out = {nb_median(v, g->n), nb_median(low, g->n), nb_median(high, g->n)};
    free(v);
    return out;
}

/* ---- pairs ---- */

/* How many units all figures may have in common. */
static size_t common_units(const struct nb_rule_group *g) {
    size_t n = g->n > 0 ? (size_t)-1 : 0;
    for (size_t i = 0; i < g->n; i++) n = g->figures[i]->n_units < n ? g->figures[i]->n_units : n;
    return n;
}

/* The group's median in one unit, NaN where a figure has no value there: a median over other figures would be another quantity. */
static double median_in(const struct nb_rule_group *g, size_t unit) {
    double *v = nb_alloc(g->n, sizeof *v);
    bool whole = true;
    for (size_t i = 0; i < g->n; i++) {
        v[i] = g->figures[i]->units[unit];
        whole &= isfinite(v[i]) != 0;
    }
    const double median = whole ? nb_median(v, g->n) : (double)NAN;
    free(v);
    return median;
}

static int n_launches(const struct nb_rule_group *g) { return g->n > 0 ? g->figures[g->n - 1]->n_launches : 0; }

struct nb_rule_gap nb_rule_gap_of(const struct nb_rule_group *a, const struct nb_rule_group *b) {
    const struct nb_interval p = nb_rule_group_value(a), q = nb_rule_group_value(b);
    const size_t na = common_units(a), nb = common_units(b), units = na < nb ? na : nb;
    double *v = nb_alloc(units + 1, sizeof *v);
    size_t n = 0;
    for (size_t u = 0; u < units; u++) {
        const double difference = median_in(a, u) - median_in(b, u);
        if (isfinite(difference)) v[n++] = difference;
    }
    struct nb_rule_gap gap = {{p.value - q.value, p.low - q.high, p.high - q.low}, n_launches(a)};
    if (n > 0) gap = (struct nb_rule_gap){nb_hodges_lehmann(v, n, 0.95), (int)n};
    free(v);
    return gap;
}
