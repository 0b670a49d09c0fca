// SPDX-License-Identifier: Apache-2.0
/* Dealing out and thinning. */
#include "src/plan/share.h"

#include <stdlib.h>

#include "src/core/log.h"

/* ---- shards ---- */

struct load {
    double s;
    size_t whole;
};

static int longest_first(const void *a, const void *b) {
    const struct load *p = a, *q = b;
    if (p->s != q->s) return p->s < q->s ? 1 : -1;
    return (p->whole > q->whole) - (p->whole < q->whole);
}

void nb_shard_choose(const struct nb_wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                     int shard, int n_shards, bool *mine) {
    struct load *loads = nb_alloc(wholes->n, sizeof *loads);
    double *taken = nb_alloc((size_t)n_shards, sizeof *taken);
    for (size_t i = 0; i < wholes->n; i++)
        loads[i] = (struct load){nb_estimate_s(cells, wholes->items[i].cells, wholes->items[i].n, effort), i};
    if (wholes->n > 1) qsort(loads, wholes->n, sizeof *loads, longest_first);
    for (size_t i = 0; i < wholes->n; i++) {
        int least = 0;
        for (int s = 1; s < n_shards; s++)
            if (taken[s] < taken[least]) least = s;
        taken[least] += loads[i].s;
        mine[loads[i].whole] = least == shard - 1;
    }
    free(loads);
    free(taken);
}

/* ---- budget ---- */

void nb_thin(size_t n, size_t keep, size_t *which) {
    for (size_t i = 0; i < keep; i++) which[i] = (size_t)((unsigned __int128)i * n / keep);
}

/* Deals `total` of all cells out to the wholes in proportion to their sizes, the roundings carried on from one to the next. */
static void deal(const struct nb_wholes *wholes, size_t n_cells, size_t total, size_t *keep) {
    size_t before = 0;
    for (size_t i = 0; i < wholes->n; i++) {
        size_t upto = before + wholes->items[i].n;
        keep[i] = (size_t)((unsigned __int128)upto * total / n_cells - (unsigned __int128)before * total / n_cells);
        before = upto;
    }
}

static double thinned_s(const struct nb_wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                        const size_t *keep) {
    double s = 0;
    for (size_t i = 0; i < wholes->n; i++) {
        size_t *which = nb_alloc(keep[i], sizeof *which);
        nb_thin(wholes->items[i].n, keep[i], which);
        for (size_t j = 0; j < keep[i]; j++) which[j] = wholes->items[i].cells[which[j]];
        s += nb_estimate_s(cells, which, keep[i], effort);
        free(which);
    }
    return s;
}

/* Seconds of `stay` of the wholes, evenly spaced; keep says which. */
static double keep_wholes(const struct nb_wholes *wholes, const double *seconds, size_t stay, size_t *keep) {
    size_t *which = nb_alloc(stay, sizeof *which);
    double s = 0;
    nb_thin(wholes->n, stay, which);
    for (size_t i = 0; i < wholes->n; i++) keep[i] = 0;
    for (size_t i = 0; i < stay; i++) {
        keep[which[i]] = wholes->items[which[i]].n;
        s += seconds[which[i]];
    }
    free(which);
    return s;
}

void nb_budget_thin_wholes(const struct nb_wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                           double budget_s, size_t *keep, double *least_s) {
    double *seconds = nb_alloc(wholes->n, sizeof *seconds);
    size_t stay = wholes->n;
    *least_s = 0;
    for (size_t i = 0; i < wholes->n; i++) {
        seconds[i] = nb_estimate_s(cells, wholes->items[i].cells, wholes->items[i].n, effort);
        if (seconds[i] > 0 && (*least_s <= 0 || seconds[i] < *least_s)) *least_s = seconds[i];
    }
    /* What even spacing takes does not grow with every one more: the most that fit are looked for from above. */
    while (stay > 0 && keep_wholes(wholes, seconds, stay, keep) > budget_s) stay--;
    keep_wholes(wholes, seconds, stay, keep);
    free(seconds);
}

void nb_budget_thin(const struct nb_wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                    double budget_s, size_t *keep, double *least_s) {
    size_t n_cells = 0;
    for (size_t i = 0; i < wholes->n; i++) n_cells += wholes->items[i].n;
    *least_s = 0;
    if (n_cells == 0) return;
    size_t fits = 0, too_many = n_cells + 1;
    while (too_many - fits > 1) {
        size_t middle = fits + (too_many - fits) / 2;
        deal(wholes, n_cells, middle, keep);
        double s = thinned_s(wholes, cells, effort, keep);
        if (middle == 1) *least_s = s;
        if (s <= budget_s)
            fits = middle;
        else
            too_many = middle;
    }
    deal(wholes, n_cells, fits, keep);
}
