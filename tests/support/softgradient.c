// SPDX-License-Identifier: Apache-2.0
/* See tests/support/softgradient.h. */
#include "tests/support/softgradient.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/lab/emulate/design.h"
#include "src/lab/emulate/emulate.h"

/* The row or channel under way. */
struct run {
    const struct soft_gradient *k;
    const struct nb_case *c;
    const struct nb_inputs *in;
    int64_t stat, n; /* elements of it */
    float mean, rstd, mean_g, mean_gx;
};

/* The result of an operation. */
static float op(const struct run *r, float v) {
    return r->c->stats_dtype == NB_STATS_X ? (float)nb_round_to(v, r->in->dtype) : v;
}
/* The result of an addition inside a reduction; composed kernels keep f32 there. */
static float add(const struct run *r, float v) { return r->c->style == NB_COMPOSED ? v : op(r, v); }

static bool is_batchnorm(const struct run *r) { return r->c->op == NB_OP_BATCHNORM; }

/* Where element j of the row or channel lies. */
static int64_t place(const struct run *r, int64_t j) {
    const struct nb_shape *s = &r->c->shape;
    if (!is_batchnorm(r)) return r->stat * s->cols + j;
    if (s->layout == NB_NHWC) return j * s->c + r->stat;
    return (j / s->hw * s->c + r->stat) * s->hw + j % s->hw;
}

static float x_of(const struct run *r, int64_t j) { return (float)nb_get(r->in->x, place(r, j), r->in->dtype); }
static float dy_of(const struct run *r, int64_t j) { return (float)nb_get(r->in->dy, place(r, j), r->in->dtype); }

static float weight(const struct run *r, int64_t j) {
    const struct nb_formula *f = &r->c->formula;
    const int64_t i = is_batchnorm(r) ? r->stat : j;
    if (f->affine == NB_AFFINE_NONE) return 1;
    const float gamma = f->param == NB_PARAM_X ? (float)nb_get(r->in->gamma_x, i, r->in->dtype) : r->in->gamma_f32[i];
    return f->weight_offset ? op(r, 1 + gamma) : gamma;
}

static float g_of(const struct run *r, int64_t j) { return op(r, dy_of(r, j) * weight(r, j)); }
static float xhat_of(const struct run *r, int64_t j) {
    if (r->k->order == ORDER_FOLDED_XHAT) return fmaf(x_of(r, j), r->rstd, -r->mean * r->rstd);
    return op(r, op(r, x_of(r, j) - r->mean) * r->rstd);
}

/* ---- sums -------------------------------------------------------------------------------------------------------------- */

typedef float (*term_fn)(const struct run *r, int64_t j);
static float term_gx(const struct run *r, int64_t j) {
    if (r->k->order == ORDER_PRODUCTS) return op(r, op(r, dy_of(r, j) * xhat_of(r, j)) * weight(r, j));
    if (r->k->order == ORDER_OF_DISTANCE) return g_of(r, j) * (x_of(r, j) - r->mean);
    if (r->k->order == ORDER_AFFINE) return g_of(r, j) * x_of(r, j);
    return op(r, g_of(r, j) * xhat_of(r, j));
}
/* Kernels that need rstd * dy for dx take it for dgamma too; it is subnormal where x is huge. */
static float term_dyx(const struct run *r, int64_t j) {
    if (r->k->order == ORDER_OF_DISTANCE) return op(r, op(r, dy_of(r, j) * r->rstd) * (x_of(r, j) - r->mean));
    return op(r, dy_of(r, j) * xhat_of(r, j));
}

/* Of n elements: of a row, or (down) j of n rows. Number i goes to lane i % lanes; the lanes are then added in order. */
static float sum(const struct run *r, term_fn term, int64_t n, bool down, int64_t j) {
    const int lanes = r->k->lanes;
    float *lane freed = nb_alloc((unsigned long long)lanes, sizeof *lane), total = 0;
    for (int64_t i = 0; i < n; i++) lane[i % lanes] = add(r, lane[i % lanes] + (down ? term(r + i, j) : term(r, i)));
    for (int l = 0; l < lanes; l++) total = add(r, total + lane[l]);
    return total;
}

int64_t soft_gradient_chain(const struct soft_gradient *k, int64_t n) {
    return (n + k->lanes - 1) / k->lanes + k->lanes;
}

static void start(struct run *r, const struct soft_gradient *k, const struct problem *b, int64_t stat) {
    const struct nb_case *c = &b->c;
    *r = (struct run){.k = k, .c = c, .in = &b->in, .stat = stat};
    r->n = is_batchnorm(r) ? c->shape.n * c->shape.hw : c->shape.cols;
    r->mean = nb_op_centres(r->c->op) ? op(r, b->mean[stat]) : 0;
    r->rstd = op(r, b->rstd[stat]);
    if (is_batchnorm(r) && c->mode == NB_INFERENCE) return;
    float divisor = (float)(c->op == NB_OP_PRMSNORM ? c->k : r->n);
    if (k->fault == GRADIENT_DIVISOR) divisor -= 1;
    const float scale = c->op == NB_OP_L2NORM ? 1 : 1 / divisor;
    if (nb_op_centres(r->c->op) && k->fault != GRADIENT_NO_MEAN)
        r->mean_g = op(r, add(r, sum(r, g_of, r->n, false, 0)) * scale);
    if (k->fault != GRADIENT_NO_PULL) r->mean_gx = op(r, add(r, sum(r, term_gx, r->n, false, 0)) * scale);
}

/* ---- dx ---------------------------------------------------------------------------------------------------------------- */

/* b = (mean_g mean - mean of g x) rstd^3, c = -b mean - mean_g rstd */
static float affine(const struct run *r, int64_t j, float mean_gx) {
    const float b = (r->mean_g * r->mean - mean_gx) * r->rstd * r->rstd * r->rstd;
    const float c = -b * r->mean - r->mean_g * r->rstd;
    return fmaf(r->rstd, g_of(r, j), fmaf(b, x_of(r, j), c));
}

static float own(const struct run *r, int64_t j) {
    const float g = g_of(r, j), xhat = xhat_of(r, j), rstd = r->rstd, mean_g = r->mean_g;
    const bool beyond = r->c->op == NB_OP_PRMSNORM && j >= r->c->k && r->k->fault != GRADIENT_ALL_COUPLED;
    const float mean_gx = beyond ? 0 : r->mean_gx;
    const enum order order = beyond ? ORDER_PLAIN : r->k->order;
    if (order == ORDER_FOLDED_MEANS)
        return op(r, fmaf(rstd, g, -op(r, fmaf(xhat, op(r, rstd * mean_gx), op(r, rstd * mean_g)))));
    if (order == ORDER_BRACKET) return op(r, op(r, g - op(r, fmaf(xhat, mean_gx, mean_g))) * rstd);
    if (order == ORDER_OF_X && !nb_op_centres(r->c->op))
        return op(r, op(r, rstd * g) - op(r, x_of(r, j) * op(r, op(r, rstd * rstd) * mean_gx)));
    if (order == ORDER_OF_DISTANCE)
        return fmaf(rstd, g, fmaf(-mean_gx * rstd * rstd * rstd, x_of(r, j) - r->mean, -mean_g * rstd));
    if (order == ORDER_AFFINE) return affine(r, j, mean_gx);
    return op(r, op(r, op(r, g - mean_g) - op(r, xhat * mean_gx)) * rstd);
}

static void store_row(const struct run *r, void *dx) {
    for (int64_t j = 0; j < r->n; j++) {
        float v = own(r, j);
        if (nb_op_adds(r->c->op)) v += (float)nb_get(r->in->dresidual_out, place(r, j), r->in->dtype);
        nb_set(dx, place(r, j), r->in->dtype, v);
    }
}

void soft_gradient_run(const struct soft_gradient *k, const struct problem *b, void *dx, float *dgamma, float *dbeta) {
    struct run *runs freed = nb_alloc((unsigned long long)b->n_stats, sizeof *runs);
    for (int64_t stat = 0; stat < b->n_stats; stat++) {
        start(&runs[stat], k, b, stat);
        store_row(&runs[stat], dx);
    }
    const bool down = !is_batchnorm(runs);
    const int64_t n = down ? b->n_stats : runs->n;
    for (int64_t i = 0; i < b->in.n_params; i++) {
        const struct run *r = down ? runs : &runs[i];
        dgamma[i] = op(r, sum(r, term_dyx, n, down, i));
        dbeta[i] = op(r, sum(r, dy_of, n, down, i));
    }
}

enum nb_loss backward_bound_of_row(const struct problem *b, int64_t chain, double *dx, double *tolerance) {
    struct nb_gradient_bound bound released_by(nb_gradient_bound_release);
    struct nb_gradient g released_by(nb_gradient_release) = backward_gradient(b);
    nb_gradient_bound_init(&bound, &b->c, &g, NULL, chain, 1, false);
    nb_gradient_row(&g, 0, dx);
    return nb_gradient_bound_row(&bound, 0, dx, tolerance);
}

double bound_ratio(double computed, double exact, double tolerance) {
    if (isinf(tolerance)) return 0;
    const double error = fabs(computed - exact);
    return error == 0 ? 0 : isnan(error) ? INFINITY : error / tolerance;
}

/* ---- forward ---- */

static void design_of(struct nb_design *d, const struct soft_kernel *k, const struct nb_case *c) {
    const enum nb_number number = nb_number_of(c->dtype);
    nb_design_init(d);
    d->op = c->op == NB_OP_ADD_RMSNORM ? NB_OP_RMSNORM : c->op == NB_OP_ADD_LAYERNORM ? NB_OP_LAYERNORM : c->op;
    d->store = number;
    if (c->stats_dtype == NB_STATS_X) {
        d->square = d->stat = d->rstd = d->scale = d->offset = number;
        d->acc = c->style == NB_COMPOSED ? NB_NUM_F32 : number;
    }
    d->lanes = k->lanes;
    d->variance = c->variance;
    d->root_form = c->formula.root;
    d->eps_place = c->formula.eps_place;
    d->cast = c->formula.cast;
    d->weight_offset = c->formula.weight_offset;
    d->k = ((double)c->k - 0.5) / (double)c->shape.cols; /* which is rounded up */
    d->eps = c->eps;
}

struct row {
    double *x, *gamma, *beta, *y;
};

static void load(struct row *w, const struct problem *p, int64_t row) {
    const struct nb_inputs *in = &p->in;
    const struct nb_formula *f = &p->c.formula;
    const bool of_x = f->param == NB_PARAM_X;
    for (int64_t i = 0; i < in->cols; i++) {
        float x = (float)nb_get(in->x, row * in->cols + i, in->dtype);
        if (nb_op_adds(p->c.op)) x += (float)nb_get(in->residual, row * in->cols + i, in->dtype);
        w->x[i] = nb_op_adds(p->c.op) && f->round_sum ? nb_round_to(x, in->dtype) : x;
        w->gamma[i] = of_x ? nb_get(in->gamma_x, i, in->dtype) : in->gamma_f32[i];
        w->beta[i] = of_x ? nb_get(in->beta_x, i, in->dtype) : in->beta_f32[i];
    }
}

/* y: elements of the dtype. */
static void soft_row(const struct soft_kernel *k, const struct problem *p, struct nb_design d, struct row *w, void *y) {
    const int64_t cols = p->c.shape.cols;
    const uint32_t affine = p->c.formula.affine;
    const double *gamma = affine == NB_AFFINE_NONE ? NULL : w->gamma,
                 *beta = affine == NB_AFFINE_GAMMA_BETA ? w->beta : NULL;
    const struct nb_emulated right = nb_emulate_row(&d, cols, w->x, gamma, beta, w->y, 1);
    if (k->unbiased) d.eps += right.var / (double)(cols - 1);
    if (k->unbiased) nb_emulate_row(&d, cols, w->x, gamma, beta, w->y, 1);
    for (int64_t i = 0; i < cols; i++) {
        const bool is_zero = k->flushes && fabs(w->y[i]) < nb_formats[p->in.dtype].min_normal;
        nb_set(y, i, p->in.dtype, is_zero ? 0 : w->y[i]);
    }
}

struct nb_accuracy soft_accuracy(const struct soft_kernel *k, const struct problem *p, struct nb_bias *bias) {
    struct nb_accuracy a;
    struct nb_bias own;
    struct nb_bound b released_by(nb_bound_release);
    struct nb_design d;
    const int64_t cols = p->c.shape.cols;
    const size_t n = (size_t)cols;
    double *all freed = nb_alloc(6 * n, sizeof *all), *exact = all, *tolerance = all + n;
    struct row w = {all + 2 * n, all + 3 * n, all + 4 * n, all + 5 * n};
    float *computed freed = nb_alloc(n, sizeof *computed);
    design_of(&d, k, &p->c);
    struct nb_oracle o released_by(nb_oracle_release) = oracle_of(p);
    nb_bound_init(&b, &p->c, &o, (cols + k->lanes - 1) / k->lanes + k->lanes); /* as of lanes added one by one */
    struct nb_accuracy_sum *sum = nb_accuracy_new(nb_number_of(p->in.dtype));
    for (int64_t r = 0; r < p->c.shape.rows; r++) {
        nb_oracle_row(&o, r, exact);
        load(&w, p, r);
        soft_row(k, p, d, &w, computed);
        const enum nb_loss loss = nb_bound_row(&b, r, exact, tolerance);
        const struct nb_row_values values = {.stored = computed, .exact = exact, .tolerance = tolerance, .loss = loss};
        nb_accuracy_row(sum, r, cols, &values);
    }
    nb_accuracy_finish(sum, &a);
    if (!bias) bias = &own;
    nb_bias_predict(&b, bias);
    nb_accuracy_judge_bias(&a, p->in.dtype, bias);
    return a;
}
