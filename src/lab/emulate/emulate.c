// SPDX-License-Identifier: Apache-2.0
/* One walk over the row for each order, with a struct that says what an element adds. */
#include "src/lab/emulate/emulate.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/twofold.h"

/* ---- A row in the design's order: one after another, in lanes, halves or blocks; what an element adds and how parts are joined depends
 * on what is formed ---- */

enum what { SUM, SUM_OF_SQUARES, MOMENTS };

struct walk {
    const struct nb_design *d;
    struct nb_rounder *r;
    const double *x;
    enum what what;
};

/* In d->acc. Moments are Welford's updating mean and sum of squared distances, parts of them are merged by Chan's formula. */
struct running {
    double n, sum, squares;        /* sum: the mean, of moments */
    double sum_rest, squares_rest; /* of NB_ORDER_KAHAN: what the last additions lost */
};

/* s + x, or s + x^2 as the design does it. */
static double plus(const struct walk *w, double s, double x, bool squared) {
    const struct nb_design *d = w->d;
    if (!squared) return nb_rounded_add(w->r, s, x, d->acc);
    if (d->fma) return nb_rounded_fma(w->r, x, x, s, d->acc);
    return nb_rounded_add(w->r, s, nb_rounded_mul(w->r, x, x, d->square), d->acc);
}

/* Kahan (1965): the next addend is less what the last addition gave too much. */
static void add_to(const struct walk *w, double *s, double *rest, double x, bool squared) {
    const enum nb_number acc = w->d->acc;
    if (w->d->order != NB_ORDER_KAHAN) {
        *s = plus(w, *s, x, squared);
        return;
    }
    const double addend = plus(w, -*rest, x, squared), sum = nb_rounded_add(w->r, *s, addend, acc);
    *rest = nb_rounded_sub(w->r, nb_rounded_sub(w->r, sum, *s, acc), addend, acc);
    *s = sum;
}

static void update_moments(const struct walk *w, struct running *m, double x) {
    const struct nb_design *d = w->d;
    m->n++;
    const double before = nb_rounded_sub(w->r, x, m->sum, d->square);
    add_to(w, &m->sum, &m->sum_rest, nb_rounded_div(w->r, before, m->n, d->acc), false);
    const double after = nb_rounded_sub(w->r, x, m->sum, d->square);
    if (d->fma && d->order != NB_ORDER_KAHAN)
        m->squares = nb_rounded_fma(w->r, before, after, m->squares, d->acc);
    else
        add_to(w, &m->squares, &m->squares_rest, nb_rounded_mul(w->r, before, after, d->square), false);
}

/* Chan, Golub & LeVeque 1983: mean_a + delta n_b / n, M_a + M_b + delta^2 n_a n_b / n. */
static struct running merged_moments(const struct walk *w, const struct running *a, const struct running *b) {
    const enum nb_number acc = w->d->acc, square = w->d->square;
    struct nb_rounder *r = w->r;
    if (a->n == 0) return *b;
    if (b->n == 0) return *a;
    struct running m = {.n = a->n + b->n};
    const double delta = nb_rounded_sub(r, b->sum, a->sum, square), share = nb_rounded_div(r, b->n, m.n, acc);
    const double weight = nb_rounded_mul(r, a->n, share, acc), between = nb_rounded_mul(r, delta, delta, square);
    const double squares = nb_rounded_add(r, a->squares, b->squares, acc);
    if (w->d->fma) {
        m.sum = nb_rounded_fma(r, delta, share, a->sum, acc);
        m.squares = nb_rounded_fma(r, between, weight, squares, acc);
    } else {
        m.sum = nb_rounded_add(r, a->sum, nb_rounded_mul(r, delta, share, acc), acc);
        m.squares = nb_rounded_add(r, squares, nb_rounded_mul(r, between, weight, acc), acc);
    }
    return m;
}

static struct running merged(const struct walk *w, const struct running *a, const struct running *b) {
    if (w->what == MOMENTS) return merged_moments(w, a, b);
    return (struct running){.sum = nb_rounded_add(w->r, a->sum, b->sum, w->d->acc)};
}

static void update(const struct walk *w, struct running *m, double x) {
    if (w->what == MOMENTS)
        update_moments(w, m, x);
    else
        add_to(w, &m->sum, &m->sum_rest, x, w->what == SUM_OF_SQUARES);
}

static struct running one_after_another(const struct walk *w, int64_t begin, int64_t end) {
    struct running m = {0};
    for (int64_t i = begin; i < end; i++) update(w, &m, w->x[i]);
    return m;
}

static struct running over_halves(const struct walk *w, int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    if (n <= w->d->leaf) return one_after_another(w, begin, end);
    const struct running left = over_halves(w, begin, begin + n / 2), right = over_halves(w, begin + n / 2, end);
    return merged(w, &left, &right);
}

static struct running over_blocks(const struct walk *w, int64_t n) {
    struct running m = {0};
    for (int64_t begin = 0; begin < n; begin += w->d->leaf) {
        const int64_t end = begin + w->d->leaf < n ? begin + w->d->leaf : n;
        const struct running block = one_after_another(w, begin, end);
        m = merged(w, &m, &block);
    }
    return m;
}

/* Neighbouring lanes are joined until one is left; an odd one goes up a level as it is. */
static struct running over_lanes(const struct walk *w, int64_t n) {
    int64_t lanes = w->d->lanes;
    if (lanes == 1) return one_after_another(w, 0, n);
    struct running *m freed = nb_alloc((unsigned long long)lanes, sizeof *m);
    for (int64_t i = 0, lane = 0; i < n; i++, lane = lane + 1 < lanes ? lane + 1 : 0) update(w, &m[lane], w->x[i]);
    for (; lanes > 1; lanes = (lanes + 1) / 2) {
        for (int64_t i = 0; i < lanes / 2; i++) m[i] = merged(w, &m[2 * i], &m[2 * i + 1]);
        if (lanes % 2) m[lanes / 2] = m[lanes - 1];
    }
    return m[0];
}

static struct running in_order(const struct nb_design *d, struct nb_rounder *r, const double *x, int64_t n,
                               enum what what) {
    const struct walk w = {d, r, x, what};
    assert(n >= 1 && d->leaf >= 1 && d->lanes >= 1);
    switch (d->order) {
    case NB_ORDER_PAIRWISE:
        return over_halves(&w, 0, n);
    case NB_ORDER_BLOCKED:
        return over_blocks(&w, n);
    default:
        return over_lanes(&w, n);
    }
}

static double sum_of(const struct nb_design *d, struct nb_rounder *r, const double *x, int64_t n) {
    return in_order(d, r, x, n, SUM).sum;
}

static double sum_of_squares(const struct nb_design *d, struct nb_rounder *r, const double *x, int64_t n) {
    return in_order(d, r, x, n, SUM_OF_SQUARES).sum;
}

/* ---- Statistics, scale, elements: the three stages of a norm, in the formats that the design gives each ---- */

struct row {
    const struct nb_design *d;
    struct nb_rounder r;
    int64_t cols, n; /* n: elements that the statistics see */
    double *x;       /* as loaded: without subnormals where the design flushes */
    double *work;    /* n distances */
    double mean, residual, var, scale;
};

/* A number as read from memory. */
static double loaded(const struct nb_design *d, double v, enum nb_number number) {
    return d->flush && fabs(v) < nb_numbers[number].min_normal ? copysign(0.0, v) : v;
}

/* A constant is stored rounded to nearest, whatever the rounding of the operations. */
static double constant(const struct nb_design *d, double v, enum nb_number number) {
    return loaded(d, nb_number_round(v, 0, number, NB_ROUND_NEAREST, 0), number);
}

/* ---- statistics -------------------------------------------------------------------------------------------------------- */

static double over_n(struct row *w, double sum) { return nb_rounded_div(&w->r, sum, (double)w->n, w->d->stat); }

static void distances_from(struct row *w, double centre) {
    for (int64_t i = 0; i < w->n; i++) w->work[i] = nb_rounded_sub(&w->r, w->x[i], centre, w->d->square);
}

static void two_pass(struct row *w) {
    const struct nb_design *d = w->d;
    w->mean = over_n(w, sum_of(d, &w->r, w->x, w->n));
    distances_from(w, w->mean);
    double squares = sum_of_squares(d, &w->r, w->work, w->n);
    if (d->variance == NB_VAR_CORRECTED) {
        const double sum = sum_of(d, &w->r, w->work, w->n);
        w->residual = over_n(w, sum);
        squares = d->fma ? nb_rounded_fma(&w->r, -w->residual, sum, squares, d->acc)
                         : nb_rounded_sub(&w->r, squares, nb_rounded_mul(&w->r, w->residual, sum, d->acc), d->acc);
    }
    w->var = over_n(w, squares);
}

/* E[t^2] - E[t]^2, t = x - x_0 or x itself. */
static void one_pass(struct row *w, bool shifted) {
    const enum nb_number stat = w->d->stat;
    const double *t = w->x;
    if (shifted) {
        distances_from(w, w->x[0]);
        t = w->work;
    }
    const double sum = sum_of(w->d, &w->r, t, w->n), squares = sum_of_squares(w->d, &w->r, t, w->n);
    const double mean = over_n(w, sum), mean_square = over_n(w, squares);
    w->var = nb_rounded_sub(&w->r, mean_square, nb_rounded_mul(&w->r, mean, mean, stat), stat);
    w->mean = shifted ? nb_rounded_add(&w->r, w->x[0], mean, stat) : mean;
}

static void statistics(struct row *w) {
    const struct nb_design *d = w->d;
    if (!nb_op_centres(d->op)) {
        const double sum = sum_of_squares(d, &w->r, w->x, w->n);
        w->var = d->op == NB_OP_L2NORM ? nb_convert(&w->r, sum, d->stat) : over_n(w, sum);
        return;
    }
    if (d->variance == NB_VAR_ONEPASS || d->variance == NB_VAR_SHIFTED) {
        one_pass(w, d->variance == NB_VAR_SHIFTED);
    } else if (d->variance == NB_VAR_WELFORD) {
        const struct running m = in_order(d, &w->r, w->x, w->n, MOMENTS);
        w->mean = nb_convert(&w->r, m.sum, d->stat);
        w->var = over_n(w, m.squares);
    } else {
        two_pass(w);
    }
}

/* ---- scale ------------------------------------------------------------------------------------------------------------- */

/* What hardware gives for 1/sqrt(v), here to 12 bits and to nearest; subnormal arguments count as 0, as with x86's rsqrtps. */
static double estimate(const struct nb_design *d, double v) {
    const double r = 1 / sqrt(fabs(v) < nb_numbers[d->root].min_normal ? copysign(0.0, v) : v);
    if (!isfinite(r) || r == 0) return r;
    int e;
    const double bits = frexp(r, &e);
    return ldexp(rint(ldexp(bits, 12)), e - 12);
}

/* One Newton step in residual form: r + r/2 (1 - v r r). */
static double newton(struct row *w, double v, double r) {
    const enum nb_number root = w->d->root;
    const double vr = nb_rounded_mul(&w->r, -v, r, root), residual = nb_rounded_fma(&w->r, vr, r, 1, root);
    return nb_rounded_fma(&w->r, nb_rounded_mul(&w->r, 0.5, r, root), residual, r, root);
}

static double reciprocal_root(struct row *w, double v, double eps) {
    const struct nb_design *d = w->d;
    const bool clamp = d->eps_place == NB_EPS_CLAMP;
    const double most = clamp ? nb_rounded_div(&w->r, 1, eps, d->root) : 0;
    double r = nb_convert(&w->r, estimate(d, v), d->root);
    if (clamp && isinf(r)) return most; /* before Newton makes it NaN */
    if (d->root_form == NB_ROOT_RSQRT_NR) r = newton(w, v, r);
    return clamp && nb_rounded_mul(&w->r, r, eps, d->root) > 1 ? most : r;
}

/* What the elements are divided by (div_sqrt) or multiplied by. */
static double scale_of(struct row *w) {
    const struct nb_design *d = w->d;
    const double eps = constant(d, d->eps, d->stat);
    const bool divides = d->root_form == NB_ROOT_DIV_SQRT, estimates = !divides && d->root_form != NB_ROOT_MUL_RECIP;
    const double v = d->eps_place == NB_EPS_INSIDE ? nb_rounded_add(&w->r, w->var, eps, d->stat) : w->var;
    if (estimates) return nb_convert(&w->r, reciprocal_root(w, v, eps), d->rstd);
    double s = nb_rounded_sqrt(&w->r, v, d->root);
    if (d->eps_place == NB_EPS_OUTSIDE) s = nb_rounded_add(&w->r, s, eps, d->root);
    if (d->eps_place == NB_EPS_CLAMP && s < eps) s = eps;
    return nb_convert(&w->r, divides ? s : nb_rounded_div(&w->r, 1, s, d->root), d->rstd);
}

/* ---- elements ---------------------------------------------------------------------------------------------------------- */

/* Over the scale, or times it. */
static double scaled(struct row *w, double v) {
    const struct nb_design *d = w->d;
    return d->root_form == NB_ROOT_DIV_SQRT ? nb_rounded_div(&w->r, v, w->scale, d->scale)
                                            : nb_rounded_mul(&w->r, v, w->scale, d->scale);
}

static double normalized(struct row *w, double x) {
    const enum nb_number scale = w->d->scale;
    if (nb_op_centres(w->d->op)) {
        x = nb_rounded_sub(&w->r, x, w->mean, scale);
        if (w->d->variance == NB_VAR_CORRECTED) x = nb_rounded_sub(&w->r, x, w->residual, scale);
    }
    return scaled(w, x);
}

static double weight(struct row *w, double gamma) {
    const struct nb_design *d = w->d;
    gamma = loaded(d, gamma, d->weight);
    return d->weight_offset ? nb_rounded_add(&w->r, 1, gamma, d->offset) : gamma;
}

/* a * b + c; null: 0. */
static double times_plus(struct row *w, double a, double b, const double *c, enum nb_number to) {
    if (c && w->d->fma) return nb_rounded_fma(&w->r, a, b, *c, to);
    const double product = nb_rounded_mul(&w->r, a, b, to);
    return c ? nb_rounded_add(&w->r, product, *c, to) : product;
}

static double store(struct row *w, double v) {
    const enum nb_rounding own = w->r.rounding;
    w->r.rounding = w->d->store_rounding;
    v = nb_convert(&w->r, v, w->d->store);
    w->r.rounding = own;
    return v;
}

/* The product of two elements of the store's format is exact in `scale`, so that one rounding is left, where that has twice its
 * precision: the kernels' f32. */
static double cast_then_scaled(struct row *w, double v, double g, const double *beta) {
    const struct nb_design *d = w->d;
    v = nb_rounded_mul(&w->r, nb_convert(&w->r, v, d->store), nb_convert(&w->r, g, d->store), d->scale);
    if (beta) v = nb_rounded_add(&w->r, nb_convert(&w->r, v, d->store), *beta, d->scale);
    return store(w, v);
}

/* y = x a + b with a = gamma * rstd, b = beta - mean * a. */
static double folded(struct row *w, double x, double g, const double *beta) {
    const enum nb_number scale = w->d->scale;
    const double a = scaled(w, g), zero = 0;
    if (!nb_op_centres(w->d->op)) return store(w, times_plus(w, x, a, beta, scale));
    const double b = times_plus(w, -w->mean, a, beta ? beta : &zero, scale);
    return store(w, times_plus(w, x, a, &b, scale));
}

static double element(struct row *w, double x, const double *gamma, const double *beta) {
    const struct nb_design *d = w->d;
    const double g = gamma ? weight(w, *gamma) : 1, b = beta ? loaded(d, *beta, d->weight) : 0;
    const double *const shift = beta ? &b : NULL;
    if (d->folded) return folded(w, x, g, shift);
    const double v = normalized(w, x);
    if (!gamma) return store(w, beta ? nb_rounded_add(&w->r, v, b, d->scale) : v);
    if (d->cast == NB_CAST_BEFORE) return cast_then_scaled(w, v, g, shift);
    return store(w, times_plus(w, v, g, shift, d->scale));
}

/* ---- rows -------------------------------------------------------------------------------------------------------------- */

static void row_init(struct row *w, const struct nb_design *d, int64_t cols, int64_t n, const double *x,
                     uint64_t seed) {
    assert(cols >= 1 && n >= 1 && n <= cols);
    *w = (struct row){.d = d, .cols = cols, .n = n};
    w->r = (struct nb_rounder){.rounding = d->rounding, .flush = d->flush, .random = nb_random_mix(seed)};
    w->x = nb_alloc((unsigned long long)cols, 2 * sizeof *w->x);
    w->work = w->x + cols;
    for (int64_t i = 0; i < cols; i++) w->x[i] = loaded(d, x[i], d->store);
}

struct nb_emulated nb_emulate_row(const struct nb_design *d, int64_t cols, const double *x, const double *gamma,
                                  const double *beta, double *y, uint64_t seed) {
    struct row w;
    row_init(&w, d, cols, nb_design_elements(d, cols), x, seed);
    statistics(&w);
    w.scale = scale_of(&w);
    for (int64_t i = 0; i < cols; i++) y[i] = element(&w, w.x[i], gamma ? &gamma[i] : NULL, beta ? &beta[i] : NULL);
    free(w.x);
    const double rstd = d->root_form == NB_ROOT_DIV_SQRT ? nb_rounded_div(&w.r, 1, w.scale, d->root) : w.scale;
    return (struct nb_emulated){.mean = w.mean, .var = w.var, .rstd = rstd};
}

double nb_emulate_sum_of_squares(const struct nb_design *d, int64_t n, const double *x, uint64_t seed) {
    struct row w;
    row_init(&w, d, n, n, x, seed);
    const double sum = sum_of_squares(d, &w.r, w.x, n);
    free(w.x);
    return sum;
}

/* ---- The statistics are the oracle's; its elements, which a few 2^-53 of error are good enough for, are not ---- */

static double plain(const struct nb_case *c, const struct nb_row_truth *t, double x, const double *gamma,
                    const double *beta) {
    double v = (x - t->mean) * t->scale;
    if (gamma) v *= c->formula.weight_offset ? 1 + *gamma : *gamma;
    return beta ? v + *beta : v;
}

void nb_exact_row(const struct nb_case *c, const double *x, const double *gamma, const double *beta,
                  struct nb_row_truth *t, double *y, double *y_low) {
    struct nb_row_truth own = {0};
    struct nb_row_truth *const truth = t ? t : &own;
    nb_truth_of_row(truth, c, x, nb_truth_elements(c));
    const bool ordinary = isfinite(truth->mean) && isfinite(truth->scale) && isfinite(truth->var);
    for (int64_t i = 0; i < c->shape.cols; i++) {
        const double *const g = gamma ? &gamma[i] : NULL, *const b = beta ? &beta[i] : NULL;
        struct nb_twofold v = {0, 0};
        if (ordinary && isfinite(x[i])) v = nb_exact_element(c, truth, x[i], g, b);
        if (!ordinary || !isfinite(v.hi) || v.hi == 0) v = nb_twofold_of(plain(c, truth, x[i], g, b)); /* signs of 0 */
        y[i] = v.hi;
        if (y_low) y_low[i] = v.lo;
    }
}
