// SPDX-License-Identifier: Apache-2.0
/* See tests/support/softkernel.h. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "tests/support/softkernel.h"

const char *const fault_names[N_FAULTS] = {
    [FAULT_NONE] = "none",
    [FAULT_DIVISOR] = "divisor n - 1",
    [FAULT_EPS] = "eps / 10",
    [FAULT_NO_EPS] = "no eps",
    [FAULT_NO_NEWTON] = "no Newton step",
    [FAULT_TRUNCATE] = "truncated store",
    [FAULT_NARROW_RSTD] = "rstd in x's dtype",
    [FAULT_NARROW_SUM] = "bf16 accumulator",
    [FAULT_CAST_BEFORE] = "cast before the weight",
    [FAULT_NARROW_OFFSET] = "1 + gamma in x's dtype",
    [FAULT_CENTRED] = "centred by mistake, or not",
    [FAULT_DROPS_LAST] = "last element left out",
    [FAULT_FLUSH] = "subnormals flushed",
};

/* The row under way. */
struct run {
    const struct soft_kernel *k;
    const struct problem *p;
    float *x;
    int64_t n; /* elements of the statistics */
};

static float narrow(const struct run *r, float v) { return (float)nb_round_to(v, r->p->in.dtype); }
/* The result of an operation on statistics. */
static float op(const struct run *r, float v) { return r->p->c.stats_dtype == NB_STATS_X ? narrow(r, v) : v; }
/* The result of an addition inside a reduction; composed kernels keep f32 there. */
static float add(const struct run *r, float v) {
    if (r->k->fault == FAULT_NARROW_SUM) return (float)nb_round_to(v, NB_BF16);
    return r->p->c.style == NB_COMPOSED ? v : op(r, v);
}

static bool centres(const struct run *r) {
    const uint32_t o = r->p->c.op;
    return (o == NB_OP_LAYERNORM || o == NB_OP_ADD_LAYERNORM) != (r->k->fault == FAULT_CENTRED);
}

static int64_t soft_chain(const struct soft_kernel *k, const struct problem *p) {
    return (p->c.shape.cols + k->lanes - 1) / k->lanes + k->lanes;
}

typedef float (*term_fn)(const struct run *r, int64_t i, float about);
static float term_x(const struct run *r, int64_t i, float about) { return op(r, r->x[i] - about); }
static float term_square(const struct run *r, int64_t i, float about) {
    float d = op(r, r->x[i] - about);
    return op(r, d * d);
}

static float sum(const struct run *r, term_fn term, float about) {
    const int lanes = r->k->lanes;
    float total = 0;
    for (int lane = 0; lane < lanes; lane++) {
        float acc = 0;
        for (int64_t i = lane; i < r->n; i += lanes) acc = add(r, acc + term(r, i, about));
        total = lane == 0 ? acc : add(r, total + acc);
    }
    return total;
}
static float mean_of(const struct run *r, term_fn term, float about) {
    float n = (float)(r->n - (r->k->fault == FAULT_DIVISOR && term == term_square));
    return op(r, sum(r, term, about) / n);
}

/* Welford by lanes, merged by Chan's formula. */
static float welford(const struct run *r, float *mean_out) {
    float count = 0, mean = 0, m2 = 0;
    for (int lane = 0; lane < r->k->lanes && lane < r->n; lane++) {
        float n = 0, m = 0, s = 0;
        for (int64_t i = lane; i < r->n; i += r->k->lanes) {
            n++;
            float delta = op(r, r->x[i] - m);
            m = op(r, m + op(r, delta / n));
            s = add(r, s + op(r, delta * op(r, r->x[i] - m)));
        }
        if (lane == 0) {
            mean = m, m2 = s, count = n;
            continue;
        }
        float delta = op(r, m - mean), total = count + n;
        float share = op(r, n / total);
        m2 = add(r, add(r, m2 + s) + op(r, op(r, delta * delta) * op(r, count * share)));
        mean = op(r, mean + op(r, delta * share));
        count = total;
    }
    *mean_out = mean;
    return op(r, m2 / (r->k->fault == FAULT_DIVISOR ? count - 1 : count));
}

static float variance(const struct run *r, float *mean) {
    const uint32_t how = r->p->c.variance;
    *mean = 0;
    if (!centres(r)) return r->p->c.op == NB_OP_L2NORM ? op(r, sum(r, term_square, 0)) : mean_of(r, term_square, 0);
    if (how == NB_VAR_WELFORD) return welford(r, mean);
    const float shift = how == NB_VAR_SHIFTED ? r->x[0] : 0;
    const float about = mean_of(r, term_x, shift);
    *mean = how == NB_VAR_SHIFTED ? op(r, shift + about) : about;
    if (how == NB_VAR_SHIFTED || how == NB_VAR_ONEPASS)
        return op(r, mean_of(r, term_square, shift) - op(r, about * about));
    float v = mean_of(r, term_square, *mean);
    if (how != NB_VAR_CORRECTED) return v;
    float residual = mean_of(r, term_x, *mean);
    return op(r, v - op(r, residual * residual));
}

/* What the elements are divided by (div_sqrt) or multiplied with. */
static float scale(const struct run *r, float v) {
    const struct nb_formula *f = &r->p->c.formula;
    double wanted = r->k->fault == FAULT_NO_EPS ? 0 : r->p->c.eps * (r->k->fault == FAULT_EPS ? 0.1 : 1);
    const float eps = op(r, (float)wanted);
    if (f->eps_place == NB_EPS_INSIDE) v = op(r, v + eps);
    if (f->root == NB_ROOT_DIV_SQRT || f->root == NB_ROOT_MUL_RECIP) {
        float s = op(r, sqrtf(v));
        if (f->eps_place == NB_EPS_OUTSIDE) s = op(r, s + eps);
        if (f->eps_place == NB_EPS_CLAMP && s < eps) s = eps;
        return f->root == NB_ROOT_DIV_SQRT ? s : op(r, 1 / s);
    }
    float e = (float)((1 + r->k->estimate_error) / sqrt((double)v));
    if (f->eps_place == NB_EPS_CLAMP && isinf(e)) return op(r, 1 / eps);
#if defined(__aarch64__)
    const int steps = 2;
#else
    const int steps = 1;
#endif
    for (int i = 0; i < steps && f->root == NB_ROOT_RSQRT_NR && r->k->fault != FAULT_NO_NEWTON; i++)
        e = e * (1.5f - 0.5f * v * e * e);
    if (f->eps_place == NB_EPS_CLAMP && e * eps > 1) e = 1 / eps;
    return op(r, e);
}

static void store(const struct run *r, void *y, int64_t i, float v) {
    double kept = nb_round_to(v, r->p->in.dtype);
    if (r->k->fault == FAULT_FLUSH && fabs(kept) < nb_formats[r->p->in.dtype].min_normal) kept = 0;
    nb_set(y, i, r->p->in.dtype, kept);
}
/* The last operation a * b + c, whose exact value is cut off towards 0. */
static void store_truncated(const struct run *r, void *y, int64_t i, double exact) {
    const double ulp = nb_ulp(exact, r->p->in.dtype);
    nb_set(y, i, r->p->in.dtype, trunc(exact / ulp) * ulp);
}

static void element(const struct run *r, void *y, int64_t i, float mean, float s) {
    const struct nb_formula *f = &r->p->c.formula;
    const bool before = (f->cast == NB_CAST_BEFORE) != (r->k->fault == FAULT_CAST_BEFORE);
    const bool truncate = r->k->fault == FAULT_TRUNCATE;
    float v = r->x[i];
    if (centres(r)) v = op(r, v - mean);
    const double exact = f->root == NB_ROOT_DIV_SQRT ? (double)v / s : (double)v * s;
    if (r->p->c.op == NB_OP_DYT)
        v = tanhf(op(r, op(r, (float)r->p->c.alpha) * r->x[i]));
    else
        v = op(r, f->root == NB_ROOT_DIV_SQRT ? v / s : v * s);
    if (f->affine == NB_AFFINE_NONE) {
        if (truncate)
            store_truncated(r, y, i, exact);
        else
            store(r, y, i, v);
        return;
    }
    float g = f->param == NB_PARAM_X ? (float)nb_get(r->p->in.gamma_x, i, r->p->in.dtype) : r->p->in.gamma_f32[i];
    float b = f->param == NB_PARAM_X ? (float)nb_get(r->p->in.beta_x, i, r->p->in.dtype) : r->p->in.beta_f32[i];
    if (f->affine == NB_AFFINE_GAMMA) b = 0;
    if (f->weight_offset) g = op(r, 1 + g);
    if (before) v = narrow(r, v);
    if (f->weight_offset && (before || r->k->fault == FAULT_NARROW_OFFSET)) g = narrow(r, g);
    if (truncate) {
        store_truncated(r, y, i, (double)v * g + b);
        return;
    }
    v = op(r, v * g);
    if (before) v = narrow(r, v);
    store(r, y, i, f->affine == NB_AFFINE_GAMMA_BETA ? op(r, v + b) : v);
}

static void load(const struct run *r, int64_t row) {
    const struct nb_inputs *in = &r->p->in;
    const bool sums = r->p->c.op == NB_OP_ADD_RMSNORM || r->p->c.op == NB_OP_ADD_LAYERNORM;
    for (int64_t i = 0; i < in->cols; i++) {
        r->x[i] = (float)nb_get(in->x, row * in->cols + i, in->dtype);
        if (sums) r->x[i] += (float)nb_get(in->residual, row * in->cols + i, in->dtype);
        if (sums && r->p->c.formula.round_sum) r->x[i] = narrow(r, r->x[i]);
    }
}

/* y: elements of the dtype. */
static void soft_row(const struct soft_kernel *k, const struct problem *p, int64_t row, void *y) {
    struct run r = {.k = k, .p = p, .n = p->c.op == NB_OP_PRMSNORM ? p->c.k : p->c.shape.cols};
    if (k->fault == FAULT_DROPS_LAST) r.n--;
    r.x = nb_alloc((unsigned long long)p->c.shape.cols, sizeof *r.x);
    load(&r, row);
    float mean = 0, s = 1;
    if (p->c.op != NB_OP_DYT) s = scale(&r, variance(&r, &mean));
    if (k->fault == FAULT_NARROW_RSTD) s = narrow(&r, s);
    for (int64_t i = 0; i < p->c.shape.cols; i++) element(&r, y, i, mean, s);
    free(r.x);
}

struct nb_accuracy soft_accuracy(const struct soft_kernel *k, const struct problem *p, struct nb_bias *bias) {
    struct nb_accuracy a;
    struct nb_oracle o;
    struct nb_bound b;
    const int64_t cols = p->c.shape.cols;
    cr_assert_eq(nb_oracle_init(&o, &p->c, &p->in), 0);
    nb_bound_init(&b, &p->c, &o, soft_chain(k, p));
    struct nb_accuracy_sum *sum = nb_accuracy_new(nb_number_of(p->in.dtype));
    double *y = calloc((size_t)cols, sizeof *y), *tolerance = calloc((size_t)cols, sizeof *tolerance);
    float *computed = calloc((size_t)cols, sizeof *computed);
    for (int64_t r = 0; r < p->c.shape.rows; r++) {
        nb_oracle_row(&o, r, y);
        soft_row(k, p, r, computed);
        const enum nb_loss loss = nb_bound_row(&b, r, y, tolerance);
        const struct nb_row_values values = {.stored = computed, .exact = y, .tolerance = tolerance, .loss = loss};
        nb_accuracy_row(sum, r, cols, &values);
    }
    nb_accuracy_finish(sum, &a);
    nb_bias_predict(&b, bias);
    nb_accuracy_judge_bias(&a, p->in.dtype, bias);
    free(y);
    free(tolerance);
    free(computed);
    nb_bound_release(&b);
    nb_oracle_release(&o);
    return a;
}
