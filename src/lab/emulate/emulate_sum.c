// SPDX-License-Identifier: Apache-2.0
/* One walk over the row for each order, told by a struct what an element adds. */
#include "src/lab/emulate/emulate_sum.h"

#include <assert.h>
#include <stdlib.h>

#include "src/core/log.h"

struct sum {
    const struct nb_design *d;
    struct nb_rounder *r;
    const double *x;
    bool squared;
};

/* s + x, or s + x^2 as the design does it. */
static double plus(const struct sum *p, double s, double x) {
    const struct nb_design *d = p->d;
    if (!p->squared) return nb_rounded_add(p->r, s, x, d->acc);
    if (d->fma) return nb_rounded_fma(p->r, x, x, s, d->acc);
    return nb_rounded_add(p->r, s, nb_rounded_mul(p->r, x, x, d->square), d->acc);
}

/* Kahan (1965): the next addend is less what the last addition gave too much. */
static void plus_compensated(const struct sum *p, double *s, double *rest, double x) {
    const enum nb_number acc = p->d->acc;
    const double addend = plus(p, -*rest, x), sum = nb_rounded_add(p->r, *s, addend, acc);
    *rest = nb_rounded_sub(p->r, nb_rounded_sub(p->r, sum, *s, acc), addend, acc);
    *s = sum;
}

static double one_after_another(const struct sum *p, int64_t begin, int64_t end) {
    double s = 0;
    for (int64_t i = begin; i < end; i++) s = plus(p, s, p->x[i]);
    return s;
}

/* Neighbours are added until one is left; an odd one goes up a level as it is. */
static double tree(const struct sum *p, double *s, int64_t n) {
    for (; n > 1; n = (n + 1) / 2) {
        for (int64_t i = 0; i < n / 2; i++) s[i] = nb_rounded_add(p->r, s[2 * i], s[2 * i + 1], p->d->acc);
        if (n % 2) s[n / 2] = s[n - 1];
    }
    return s[0];
}

static double over_lanes(const struct sum *p, int64_t n) {
    const int64_t lanes = p->d->lanes;
    const bool compensated = p->d->order == NB_ORDER_KAHAN;
    double *s = nb_alloc((unsigned long long)lanes, 2 * sizeof *s), *rest = s + lanes;
    for (int64_t i = 0, lane = 0; i < n; i++, lane = lane + 1 < lanes ? lane + 1 : 0) {
        if (compensated)
            plus_compensated(p, &s[lane], &rest[lane], p->x[i]);
        else
            s[lane] = plus(p, s[lane], p->x[i]);
    }
    const double total = tree(p, s, lanes);
    free(s);
    return total;
}

static double halves(const struct sum *p, int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    if (n <= p->d->leaf) return one_after_another(p, begin, end);
    const double left = halves(p, begin, begin + n / 2), right = halves(p, begin + n / 2, end);
    return nb_rounded_add(p->r, left, right, p->d->acc);
}

static double blocks(const struct sum *p, int64_t n) {
    double s = 0;
    for (int64_t begin = 0; begin < n; begin += p->d->leaf) {
        const int64_t end = begin + p->d->leaf < n ? begin + p->d->leaf : n;
        s = nb_rounded_add(p->r, s, one_after_another(p, begin, end), p->d->acc);
    }
    return s;
}

static double in_order(const struct sum *p, int64_t n) {
    assert(n >= 1 && p->d->leaf >= 1 && p->d->lanes >= 1);
    switch (p->d->order) {
    case NB_ORDER_PAIRWISE:
        return halves(p, 0, n);
    case NB_ORDER_BLOCKED:
        return blocks(p, n);
    default:
        return p->d->lanes == 1 && p->d->order == NB_ORDER_SEQUENTIAL ? one_after_another(p, 0, n) : over_lanes(p, n);
    }
}

double nb_emulate_sum(const struct nb_design *d, struct nb_rounder *r, const double *x, int64_t n) {
    return in_order(&(struct sum){d, r, x, false}, n);
}

double nb_emulate_sum_squares(const struct nb_design *d, struct nb_rounder *r, const double *x, int64_t n) {
    return in_order(&(struct sum){d, r, x, true}, n);
}

/* ---- running moments --------------------------------------------------------------------------------------------------- */

struct walk {
    const struct nb_design *d;
    struct nb_rounder *r;
    const double *x;
};

static void add_to(const struct walk *w, double *s, double *rest, double v) {
    const struct sum plain = {w->d, w->r, NULL, false};
    if (w->d->order == NB_ORDER_KAHAN)
        plus_compensated(&plain, s, rest, v);
    else
        *s = nb_rounded_add(w->r, *s, v, w->d->acc);
}

static void update(const struct walk *w, struct nb_running *m, double x) {
    const struct nb_design *d = w->d;
    m->n++;
    const double before = nb_rounded_sub(w->r, x, m->mean, d->square);
    add_to(w, &m->mean, &m->mean_rest, nb_rounded_div(w->r, before, m->n, d->acc));
    const double after = nb_rounded_sub(w->r, x, m->mean, d->square);
    if (d->fma && d->order != NB_ORDER_KAHAN)
        m->squares = nb_rounded_fma(w->r, before, after, m->squares, d->acc);
    else
        add_to(w, &m->squares, &m->squares_rest, nb_rounded_mul(w->r, before, after, d->square));
}

/* Chan, Golub & LeVeque 1983: mean_a + delta n_b / n, M_a + M_b + delta^2 n_a n_b / n. */
static struct nb_running merged(const struct walk *w, const struct nb_running *a, const struct nb_running *b) {
    const enum nb_number acc = w->d->acc, square = w->d->square;
    struct nb_rounder *r = w->r;
    if (a->n == 0) return *b;
    if (b->n == 0) return *a;
    struct nb_running m = {.n = a->n + b->n};
    const double delta = nb_rounded_sub(r, b->mean, a->mean, square), share = nb_rounded_div(r, b->n, m.n, acc);
    const double weight = nb_rounded_mul(r, a->n, share, acc), between = nb_rounded_mul(r, delta, delta, square);
    const double squares = nb_rounded_add(r, a->squares, b->squares, acc);
    if (w->d->fma) {
        m.mean = nb_rounded_fma(r, delta, share, a->mean, acc);
        m.squares = nb_rounded_fma(r, between, weight, squares, acc);
    } else {
        m.mean = nb_rounded_add(r, a->mean, nb_rounded_mul(r, delta, share, acc), acc);
        m.squares = nb_rounded_add(r, squares, nb_rounded_mul(r, between, weight, acc), acc);
    }
    return m;
}

static struct nb_running run_over(const struct walk *w, int64_t begin, int64_t end) {
    struct nb_running m = {0};
    for (int64_t i = begin; i < end; i++) update(w, &m, w->x[i]);
    return m;
}

static struct nb_running run_halves(const struct walk *w, int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    if (n <= w->d->leaf) return run_over(w, begin, end);
    const struct nb_running left = run_halves(w, begin, begin + n / 2), right = run_halves(w, begin + n / 2, end);
    return merged(w, &left, &right);
}

static struct nb_running run_blocks(const struct walk *w, int64_t n) {
    struct nb_running m = {0};
    for (int64_t begin = 0; begin < n; begin += w->d->leaf) {
        const int64_t end = begin + w->d->leaf < n ? begin + w->d->leaf : n;
        const struct nb_running block = run_over(w, begin, end);
        m = merged(w, &m, &block);
    }
    return m;
}

static struct nb_running run_lanes(const struct walk *w, int64_t n) {
    int64_t lanes = w->d->lanes;
    struct nb_running *m = nb_alloc((unsigned long long)lanes, sizeof *m);
    for (int64_t i = 0; i < n; i++) update(w, &m[i % lanes], w->x[i]);
    for (; lanes > 1; lanes = (lanes + 1) / 2) {
        for (int64_t i = 0; i < lanes / 2; i++) m[i] = merged(w, &m[2 * i], &m[2 * i + 1]);
        if (lanes % 2) m[lanes / 2] = m[lanes - 1];
    }
    const struct nb_running total = m[0];
    free(m);
    return total;
}

struct nb_running nb_emulate_welford(const struct nb_design *d, struct nb_rounder *r, const double *x, int64_t n) {
    const struct walk w = {d, r, x};
    assert(n >= 1 && d->leaf >= 1 && d->lanes >= 1);
    switch (d->order) {
    case NB_ORDER_PAIRWISE:
        return run_halves(&w, 0, n);
    case NB_ORDER_BLOCKED:
        return run_blocks(&w, n);
    default:
        return run_lanes(&w, n);
    }
}
