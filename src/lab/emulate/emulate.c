// SPDX-License-Identifier: Apache-2.0
/* Statistics, scale, elements: the three stages of a norm, in the formats that the design gives each. */
#include "src/lab/emulate/emulate.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "src/core/case.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/rounded_ops.h"
#include "src/lab/emulate/emulate_sum.h"

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
    w->mean = over_n(w, nb_emulate_sum(d, &w->r, w->x, w->n));
    distances_from(w, w->mean);
    double squares = nb_emulate_sum_squares(d, &w->r, w->work, w->n);
    if (d->variance == NB_VAR_CORRECTED) {
        const double sum = nb_emulate_sum(d, &w->r, w->work, w->n);
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
    const double sum = nb_emulate_sum(w->d, &w->r, t, w->n), squares = nb_emulate_sum_squares(w->d, &w->r, t, w->n);
    const double mean = over_n(w, sum), mean_square = over_n(w, squares);
    w->var = nb_rounded_sub(&w->r, mean_square, nb_rounded_mul(&w->r, mean, mean, stat), stat);
    w->mean = shifted ? nb_rounded_add(&w->r, w->x[0], mean, stat) : mean;
}

static void statistics(struct row *w) {
    const struct nb_design *d = w->d;
    if (!nb_op_centres(d->op)) {
        const double sum = nb_emulate_sum_squares(d, &w->r, w->x, w->n);
        w->var = d->op == NB_OP_L2NORM ? nb_convert(&w->r, sum, d->stat) : over_n(w, sum);
        return;
    }
    if (d->variance == NB_VAR_ONEPASS || d->variance == NB_VAR_SHIFTED) {
        one_pass(w, d->variance == NB_VAR_SHIFTED);
    } else if (d->variance == NB_VAR_WELFORD) {
        const struct nb_running m = nb_emulate_welford(d, &w->r, w->x, w->n);
        w->mean = nb_convert(&w->r, m.mean, d->stat);
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
    const double sum = nb_emulate_sum_squares(d, &w.r, w.x, n);
    free(w.x);
    return sum;
}
