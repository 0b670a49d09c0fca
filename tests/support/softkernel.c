// SPDX-License-Identifier: Apache-2.0
/* See tests/support/softkernel.h. */
#include "tests/support/softkernel.h"

#include <criterion/criterion.h>
#include <math.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/lab/emulate/design.h"
#include "src/lab/emulate/emulate.h"

static bool adds(const struct nb_case *c) { return c->op == NB_OP_ADD_RMSNORM || c->op == NB_OP_ADD_LAYERNORM; }

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
        if (adds(&p->c)) x += (float)nb_get(in->residual, row * in->cols + i, in->dtype);
        w->x[i] = adds(&p->c) && f->round_sum ? nb_round_to(x, in->dtype) : x;
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
    struct nb_oracle o released_by(nb_oracle_release);
    struct nb_bound b released_by(nb_bound_release);
    struct nb_design d;
    const int64_t cols = p->c.shape.cols;
    const size_t n = (size_t)cols;
    double *all freed = nb_alloc(6 * n, sizeof *all), *exact = all, *tolerance = all + n;
    struct row w = {all + 2 * n, all + 3 * n, all + 4 * n, all + 5 * n};
    float *computed freed = nb_alloc(n, sizeof *computed);
    design_of(&d, k, &p->c);
    cr_assert_eq(nb_oracle_init(&o, &p->c, &p->in), 0);
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
    nb_bias_predict(&b, bias);
    nb_accuracy_judge_bias(&a, p->in.dtype, bias);
    return a;
}
